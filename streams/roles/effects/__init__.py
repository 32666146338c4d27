"""The role `effects`: what was accepted is carried out, once, and told of in receipts.

Here: dispatched records to orders, the lane's steps for them, the reconciler beside the lanes.
Not here: the executor and the providers (ticketgate.agents.effects), the ledger (ticketgate.store.ledger).
"""
