"""The funnel on the workbench: files of cases, the failure profile, records exported as cases.

Not here: the gates (ticketgate.agents.funnel), the executor (ticketgate.agents.effects).
"""
