"""How far each effect is: one hash an effect, its states and transitions, and its restoring from receipts.

Not here: what is sent when (ticketgate.agents.effects).
"""
