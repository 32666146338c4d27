"""Why a value from outside was refused, and how such reasons quote what they refuse.

A reason travels in a Kafka header and in logs, so whatever it quotes is cut to a length that does not depend
on the input: a key of 256 KiB must not become a header of 256 KiB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import orjson
from ticketgate.codecs.verdict import Stage

__all__ = ["Malformed", "first_few", "quote", "shorten", "wrong_kind"]

# Long enough to recognise any key or number that a person would type, short enough for a header.
QUOTE_CHARS = 64

# Who mends one fault after the other needs no more at a time; a list as long as its document would outgrow it.
MOST_REASONS = 24


@dataclass(frozen=True, slots=True)
class Malformed:
    """A value that cannot be taken: the gate that refused it, a stable code for metrics, a reason for people.

    stage: `parse` for bytes, `schema` for shape. code: snake_case from a small fixed set,
    the value of `ticketgate-error-code` and a metric's label. reason: precise, bounded, quotes the key.
    """

    stage: Stage
    code: str
    reason: str


def shorten(text: str, limit: int = QUOTE_CHARS) -> str:
    """`text`, or its beginning with an ellipsis and its length, if it is longer than `limit` characters."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def quote(text: str) -> str:
    """`text` in double quotes as JSON writes it, shortened: control characters and quotes cannot forge a log line."""
    shown = text[:QUOTE_CHARS].encode("utf-8", "replace").decode("utf-8")
    quoted = orjson.dumps(shown).decode("utf-8")
    return quoted if len(text) <= QUOTE_CHARS else f'{quoted[:-1]}…" ({len(text)} characters)'


def first_few(reasons: Iterable[str], *, most: int = MOST_REASONS) -> list[str]:
    """The first `most` reasons, and how many more there are. Reasons are made as they are asked for."""
    listed = iter(reasons)
    found = list(islice(listed, most))
    more = sum(1 for _ in listed)
    return [*found, f"and {more} more"] if more else found


def wrong_kind(value: object) -> str:
    """What a JSON value is, in words that follow "not": `null`, `true`, `the number 1`, `text`, `an array`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # str() of an integer of more than 4,300 digits raises.
        return f"the number {value}" if value.bit_length() <= 64 else "a number beyond 64 bits"
    if isinstance(value, float):
        return f"the number {value!r}"
    if isinstance(value, str):
        return "text" if value else "empty text"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, Sequence):
        return "an array"
    return f"a Python {type(value).__name__}"
