"""The delivery protocol: one lane for each assigned input partition, its steps in `lane`.

Here: rebalances to lanes, membership, the commit, one way to recover from everything; `opening` and `taking` beside.
Not here: what is decided of a batch (`roles`), what Redis keeps (ticketgate.store), the process around (`process`).
ARCHITECTURE.md#delivery has the protocol and its invariants.
"""
