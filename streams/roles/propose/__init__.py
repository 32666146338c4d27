"""The role `propose`: proposed calls to case decisions, with evidence and the attempts before.

Here: what a lane does with a batch of proposals.
Not here: the gates (ticketgate.agents.funnel), the attempts' store (ticketgate.store.attempts).
"""
