"""The role `decide`: tickets to decisions, whatever the scorer does.

Here: retries and time limits of deciding, and the thread a model runs in.
Not here: the gates and the policy (ticketgate.agents.deciding, ticketgate.agents.policy).
"""
