"""Carrying out effects: the port to a provider, the order of its steps, and a strict ledger in memory.

Importing this package loads nothing.
"""
