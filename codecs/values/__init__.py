"""Bytes to values and back, strictly: the grammar, the limits, the shape of a record, and reasons that quote.

Not here: which fields a record has (`records`).
"""
