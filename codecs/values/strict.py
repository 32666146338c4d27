"""Bytes to a JSON value and back, strictly: one total function each way, and one canonical form.

Promise: `decode` gives a value or a `Malformed` for any bytes, raises nothing, and costs time and memory in
proportion to the input. What it gives can be written again by `encode` and reads back equal: no NaN, no
infinity, no integer beyond 64 bits, no duplicate key, no lone surrogate, nothing nested beyond 64, no more objects
and arrays than its size allows. A decimal that no float holds is kept as its text (`codecs.values.exact`).
A byte order mark is refused, wherever a producer put one.

jiter reads, because it is fast and catches duplicate keys. It lets through three things (1e999 as infinity,
integers of 4,000 digits, nesting to 200), so anything that could be one of them is walked once more. Its
errors do not say where in the document a key lies; `codecs.scan` reads a refused document again to say why.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias, cast

import jiter
import orjson
from ticketgate.codecs.values.exact import Exact, number_of
from ticketgate.codecs.values.limits import (
    BYTES_A_CONTAINER,
    DEFAULT_MAX_BYTES,
    MAX_CONTAINERS_ANYWAY,
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_OWN_DEPTH,
    MIN_INTEGER,
)
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.scan import explain
from ticketgate.codecs.verdict import Stage

__all__ = [
    "DEFAULT_MAX_BYTES",
    "MAX_DEPTH",
    "JsonValue",
    "Malformed",
    "canonical",
    "decode",
    "encode",
    "is_within_depth",
    "reread",
]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# orjson would write these by itself, unseen by the search for NaN; records are built of plain values.
_PLAIN_VALUES_ONLY = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_JSON_WHITE_SPACE = b" \t\n\r"

# What must stand in the bytes before jiter can have let an infinity or a huge integer through, or have rounded a
# decimal: an exponent, a run of 19 digits (2**63 has 19; an infinity without an exponent has 309), or eight digits on
# one side of a point (fewer than 16 in all are always held). Text may match too; that costs it a walk, no more. One
# leading class and not several alternatives: six times faster on plain text.
_PERHAPS_OUT_OF_RANGE = re.compile(rb"[0-9](?:[eE]|\.[0-9]{8}|[0-9]{7}(?:\.[0-9]|[0-9]{11}))")
_PERHAPS_ROUNDED = re.compile(rb"[0-9](?:[eE]|\.[0-9]{8}|[0-9]{7}\.[0-9])")

# Atomic, so that a text without an end costs its length once. A possessive group matches too little on Python 3.11.2.
_TEXT = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"', re.DOTALL)

_DEEP = re.compile(rb"[\[{](?:[ \t\r\n]*+[\[{]){%d}" % MAX_DEPTH)

# How a float is written: always with a point or an exponent.
_PERHAPS_FLOAT = re.compile(rb"[0-9][.eE]")


def decode(
    data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES, is_our_own: bool = False
) -> JsonValue | Malformed:
    """The JSON value that `data` writes, or why it is refused at stage `parse`.

    Faults are looked for in this order, and the first found is reported: size, nothing at all, byte order mark,
    UTF-8, then whatever comes first in the document. Integers are kept as int (-2**63 … 2**64-1), numbers with
    a point or an exponent become float, or `Exact` where no float is just that. A tombstone is no value and must not be
    brought here. is_our_own: an operator's file, or a record that we wrote around a stranger's, which may have as many
    objects and arrays as it likes, nested to MAX_OWN_DEPTH.
    """
    max_depth = MAX_OWN_DEPTH if is_our_own else MAX_DEPTH
    if len(data) > max_bytes:
        return _malformed(
            "too_large", f"too large: {len(data)} bytes, more than the {max_bytes} that are taken"
        )
    if not data or not data.strip(_JSON_WHITE_SPACE):
        what = "only white space" if data else "zero bytes"
        return _malformed("empty_value", f"empty value: {what}, where a JSON value must stand")
    if data.startswith(_BYTE_ORDER_MARK):
        return _malformed("bom", "byte order mark before the JSON value: send UTF-8 without one")
    containers = _containers(data, 0, len(data))
    if not is_our_own and _has_too_many(containers, data):
        most = MAX_CONTAINERS_ANYWAY + len(data) // BYTES_A_CONTAINER
        what = f"more than {most} objects and arrays, which is what {len(data)} bytes may have"
        # Whoever nests too deeply has too many as well, and is told the nearer reason.
        return (explain(data) if _DEEP.search(data) else None) or _malformed("too_many_containers", what)
    # Whether it could hold what jiter lets through: decided on bytes, since most tickets cannot.
    is_suspicious = containers > MAX_DEPTH or _PERHAPS_OUT_OF_RANGE.search(data) is not None
    try:
        value = _exactly(data) if is_suspicious and _PERHAPS_ROUNDED.search(data) else _rounded(data)
    except ValueError as err:
        return explain(data, max_depth=max_depth) or _malformed("not_json", f"not JSON: {err}")
    if is_suspicious and not _is_within_limits(value, max_depth):
        return explain(data, max_depth=max_depth) or _malformed(
            "out_of_range", "a number or the nesting is beyond what is taken"
        )
    return value


def reread(data: bytes) -> JsonValue:
    """What `encode` wrote, without judging it again."""
    return _exactly(data) if _PERHAPS_ROUNDED.search(data) else cast("JsonValue", orjson.loads(data))


def encode(value: object) -> bytes:
    """`value` as compact UTF-8 JSON, keys in the order given.

    Raises ValueError for what JSON cannot carry: NaN, infinity, an integer beyond 64 bits, a lone surrogate,
    a key that is not text, a cycle. Nothing is written in its place.
    """
    return _write(value, 0)


def canonical(value: object) -> bytes:
    """`value` as JSON with sorted keys and no white space, one form for equal values: what fingerprints hash.

    Numbers that are equal are written alike, so that a mirror which rewrites 1 as 1.0 does not make another
    ticket of it: a float without a fraction that fits 64 bits is written as that integer, and -0.0 as 0. Other
    floats are written in their shortest form that reads back equal. Text is not normalised: é as one code
    point and as two are different. Raises ValueError as `encode` does.
    """
    written = _write(value, orjson.OPT_SORT_KEYS)
    # In text a digit before a point or an e is common, and looking for a float is cheaper than reading all again.
    if _PERHAPS_FLOAT.search(written) is None or not _has_float(value):
        return written
    return _write(_with_plain_numbers(reread(written)), orjson.OPT_SORT_KEYS)


def _malformed(code: str, reason: str) -> Malformed:
    return Malformed(Stage.PARSE, code, reason)


def _has_too_many(count: int, data: bytes) -> bool:
    """Whether of `count` containers, some perhaps in texts, more than may be held in memory are none. Texts are looked
    into only then."""
    most = MAX_CONTAINERS_ANYWAY + len(data) // BYTES_A_CONTAINER
    if count <= most:
        return False
    return count - sum(_containers(data, *text.span()) for text in _TEXT.finditer(data)) > most


def _rounded(data: bytes) -> JsonValue:
    """The value that `data` writes, with floats for decimals. Raises ValueError."""
    return cast("JsonValue", jiter.from_json(data, allow_inf_nan=False, catch_duplicate_keys=True))


def _exactly(data: bytes) -> JsonValue:
    """The value that `data` writes, with every number that no float holds as it stands. Raises ValueError."""
    value = jiter.from_json(data, allow_inf_nan=False, catch_duplicate_keys=True, float_mode="lossless-float")
    if isinstance(value, jiter.LosslessFloat):
        return number_of(str(value))
    todo = [value]
    while todo:
        item = todo.pop()
        entries = (
            item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        )
        for place, entry in list(entries):
            if isinstance(entry, jiter.LosslessFloat):
                item[place] = number_of(str(entry))
            elif isinstance(entry, dict | list):
                todo.append(entry)
    return cast("JsonValue", value)


def _containers(data: bytes, begin: int, end: int) -> int:
    return data.count(b"{", begin, end) + data.count(b"[", begin, end)


def _is_within_limits(value: JsonValue, max_depth: int) -> bool:
    """Whether every number is finite and within 64 bits, and nothing is nested beyond `max_depth`."""
    layer: list[JsonValue] = [value]
    depth = 0
    while layer:
        below: list[JsonValue] = []
        has_containers = False
        for item in layer:
            if isinstance(item, dict):
                has_containers = True
                below.extend(item.values())
            elif isinstance(item, list):
                has_containers = True
                below.extend(item)
            elif isinstance(item, float):
                if not math.isfinite(item):
                    return False
            elif isinstance(item, int) and not MIN_INTEGER <= item <= MAX_INTEGER:
                return False
        depth += has_containers
        if depth > max_depth:
            return False
        layer = below
    return True


def is_within_depth(value: object, most: int) -> bool:
    """Whether nothing in `value` is nested beyond `most` levels; a plain value has none."""
    layer = [[value]]
    for _ in range(most + 1):
        layer = [
            list(each.values()) if isinstance(each, dict) else list(each)
            for entries in layer
            for each in entries
            if isinstance(each, dict | list | tuple)
        ]
        if not layer:
            return True
    return False


def _write(value: object, option: int) -> bytes:
    try:
        written = orjson.dumps(value, default=_exact_text, option=option | _PLAIN_VALUES_ONLY)
    except TypeError as err:  # orjson.JSONEncodeError is one
        raise ValueError(f"cannot be written as JSON: {err}") from err
    # orjson writes NaN and the infinities as null. Only where a null was written can one have been.
    if b"null" in written and _has_non_finite(value):
        raise ValueError("cannot be written as JSON: a number is NaN or infinite")
    return written


def _exact_text(value: object) -> orjson.Fragment:
    """How orjson is told of a number that is kept as its text. Raises TypeError for any other value."""
    if isinstance(value, Exact):
        return orjson.Fragment(value.text)
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def _has_non_finite(value: object) -> bool:
    """Whether a float that is not finite lies in what orjson has just written, so without cycles."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return True
        elif isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, (list, tuple)):
            todo.extend(item)
    return False


_NO_FLOATS = frozenset({str, int, bool, type(None)})


def _has_float(value: object) -> bool:
    """Whether a float may lie in what orjson has just written. True for what may hide one, such as an Enum's value."""
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            todo.extend(item.values())
        elif type(item) is list or type(item) is tuple:
            todo.extend(item)
        elif type(item) not in _NO_FLOATS:
            return True
    return False


def _with_plain_numbers(value: JsonValue) -> JsonValue:
    """`value`, whose floats without a fraction are replaced in place by integers. Owns `value`: a copy."""
    if isinstance(value, float):
        return _plain(value)
    todo: list[JsonValue] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            item.update({key: _plain(entry) for key, entry in item.items() if isinstance(entry, float)})
            todo.extend(item.values())
        elif isinstance(item, list):
            item[:] = [_plain(entry) if isinstance(entry, float) else entry for entry in item]
            todo.extend(item)
    return value


def _plain(number: float) -> float:
    """The integer that `number` equals if 64 bits hold it, else `number`."""
    if isinstance(number, Exact):
        return number.normal()
    return (
        int(number)
        if isinstance(number, float) and number.is_integer() and MIN_INTEGER <= number < MAX_INTEGER + 1
        else number
    )
