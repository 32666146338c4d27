"""Providers and ledgers behind the ports: over HTTP, in a Redis hash, in memory. Each is loaded by itself.

Not here: what an answer means for an effect (`rules`).
"""
