"""Commands that look after a deployment: audit, claims, ledger, reconcile, replay.

Not here: what they do (`operations`).
"""
