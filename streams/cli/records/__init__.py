"""Commands on records: produce, consume, and dead letters.

Not here: reading and sending (`kafka`), what becomes of dead letters (`operations.dead_letters`).
"""
