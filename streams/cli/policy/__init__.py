"""`ticketgate policy`: lint, test, show, diff and import. None loads a broker's client.

Not here: what they find (ticketgate.agents.workbench.policy).
"""
