"""Raw answers made fit for a record: whatever a scorer gave becomes JSON, nothing is lost as null.

A record keeps a scorer's answers as they came, even broken ones, for the person who
reviews them. JSON has no NaN, so what it cannot carry becomes text that says what it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ticketgate.codecs.values.limits import MAX_DEPTH, MAX_INTEGER, MIN_INTEGER
from ticketgate.codecs.values.malformed import shorten
from ticketgate.codecs.values.strict import JsonValue

__all__ = ["tag_non_finite"]

# The record puts answers below its own object and field; this leaves room for both and for a reader's limit.
_MAX_ANSWER_DEPTH = MAX_DEPTH - 4


def tag_non_finite(raw: object) -> JsonValue:
    """`raw` as a value that `strict.encode` can write, equal to it wherever JSON allows.

    NaN, Infinity and -Infinity become the texts "NaN", "Infinity", "-Infinity"; an integer beyond 64 bits its
    digits, or its size if they are many; a lone surrogate U+FFFD; anything that is no JSON value its Python repr,
    shortened; what is nested too deep "…". Tuples become arrays.
    """
    return _tagged(raw, _MAX_ANSWER_DEPTH)


def _tagged(raw: object, depth: int) -> JsonValue:
    if raw is None or isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        return _writable(raw)
    if isinstance(raw, int):
        return int(raw) if MIN_INTEGER <= raw <= MAX_INTEGER else _huge(raw)
    if isinstance(raw, float):
        # float() of a float keeps it and drops a subclass that orjson would not write (numpy.float64).
        return (
            float(raw)
            if math.isfinite(raw)
            else {"nan": "NaN", "inf": "Infinity"}.get(str(float(raw)), "-Infinity")
        )
    # dict before Mapping, which takes ten times as long to ask.
    if not isinstance(raw, (dict, list, tuple, Mapping)):
        return _writable(shorten(repr(raw)))
    if depth == 0:
        return "…"
    if isinstance(raw, (dict, Mapping)):
        return _tagged_object(raw, depth)
    return [_tagged(item, depth - 1) for item in raw]


def _tagged_object(raw: Mapping[object, object], depth: int) -> dict[str, JsonValue]:
    tagged: dict[str, JsonValue] = {}
    for key, item in raw.items():
        name = (
            key
            if type(key) is str and key.isascii()
            else _writable(key if isinstance(key, str) else shorten(repr(key)))
        )
        # Most of what comes is one of these, and this runs over every answer of every ticket.
        if (type(item) is float and math.isfinite(item)) or (type(item) is str and item.isascii()):
            tagged[name] = item
        elif type(item) is dict and depth > 1:
            tagged[name] = item if _is_noul(item) else _tagged_object(item, depth - 1)
        else:
            tagged[name] = _tagged(item, depth - 1)
    return tagged


def _is_noul(item: dict[object, object]) -> bool:
    """Whether it is a noul's answer and no more, which can be written as it is: a policy may have forty a ticket."""
    return (
        len(item) == 2
        and item.get("type") == "noul"
        and type(noul := item.get("noul")) is float
        and math.isfinite(noul)
    )


def _huge(number: int) -> str:
    # str() of more than 4,300 digits raises, and a long one says no more than its size.
    return str(number) if number.bit_length() <= 256 else f"an integer of {number.bit_length()} bits"


def _writable(text: str) -> str:
    if type(text) is str and text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
