"""The System One protocol: questions, answers and their checks, JSON Schema to questions, the wire's errors.

Not here: who answers (ticketgate.agents.scoring), the endpoint (streams.process.web).
"""
