"""Commands on the funnel's files and cases: funnel, release, case.

Not here: the gates (ticketgate.agents.funnel), the cases' run (ticketgate.agents.workbench.funnel).
"""
