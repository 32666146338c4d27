"""Policies on the workbench: lint, compare, show, import, try on cases, judge recorded decisions again.

Not here: the language and its judging (ticketgate.agents.policy).
"""
