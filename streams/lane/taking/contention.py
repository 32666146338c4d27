"""Others are at work on the same effects or cases: no record is at fault for it."""

from __future__ import annotations


class KeyLeft(Exception):
    """Another lane stopped the order that had the key when this one came upon it. The lane reopens, and its own order
    is prepared."""

    def __init__(self, key: str) -> None:
        super().__init__(f"effect {key} was stopped for another record, which left its key")


class AttemptsContested(Exception):
    """Other lanes wrote to the same cases again and again. Nothing is decided; the lane reopens."""
