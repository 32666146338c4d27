"""Carrying out effects: the port to providers, the executor, the reconciler, and the rules between them.

Here: when an effect is sent, read back, settled or held. `adapters` reach out. Importing this package loads nothing.
Not here: the ledger on Redis (ticketgate.store.ledger), the lane that calls the executor (streams.roles.effects).
"""
