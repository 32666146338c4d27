"""Commands that decide on this machine, without a broker: run and check.

Not here: the judging (ticketgate.agents).
"""
