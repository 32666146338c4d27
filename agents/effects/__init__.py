"""Carrying out effects: ports to providers, the executor, the reconciler, and a ledger in memory.

Importing this package loads nothing.
"""
