"""Inputs for properties: JSON values, good tickets, tickets with one mutation, and bytes of every kind.

A property runs on TICKETGATE_EXAMPLES examples (300 unless told), and on 50,000 where its test is marked chaos.
"""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

some = settings(
    max_examples=int(os.environ.get("TICKETGATE_EXAMPLES", "300")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
many = settings(some, max_examples=50_000)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(text, values, max_size=4)
times = st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()) | st.sampled_from(
    ["2026-11-29T18:00:00Z", "2016-12-31T23:59:60z", "2024-02-29t00:00:00.123456789-23:59"]
)
tickets = st.fixed_dictionaries(
    {
        "id": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
        "state": text | objects,
    },
    optional={
        "schema": st.just("ticket/1"),
        "tenant": text,
        "idempotency_key": st.text("abc-é", min_size=8, max_size=20),
        "received_at": st.just("2026-11-29T18:00:00.5+01:00"),
        "attributes": objects,
    },
)

# Pieces that are near to JSON: in a random row they reach more corners of the grammar than random bytes.
_PIECES = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b" ", b"\n", b"\t", b"\x0b", b"\xc2\xa0", b"\x00", b"\\", b"/",
    b"0", b"1", b"-", b"+", b".", b"e", b"E", b"00", b"-0", b"1.5", b"1e9", b"1e999", b"-1e999", b"1e-999",
    b"18446744073709551615", b"18446744073709551616", b"-9223372036854775808", b"-9223372036854775809",
    b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity", b"None", b"nul",
    b'"a"', b'"b"', b'"\\u0061"', b'"a":', b'{"a":1}', b"[[]]", b"{}", b'"\\ud83d"', b'"\\ude00"',
    b'"\\ud83d\\ude00"', b'"\\u00e9"', b'"\xc3\xa9"', b'"\\x41"', b'"\\u12"', b'"\x01"', b"\xff", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"[" * 63, b"]" * 63, b"[" * 70, b'{"a":' * 64, b"9" * 400, b"1" * 310, b"/*x*/", b"'a'",
]  # fmt: skip
rows = st.lists(st.sampled_from(_PIECES), max_size=12).map(b"".join)
nested = st.integers(60, 68).flatmap(
    lambda depth: st.lists(st.booleans(), min_size=depth, max_size=depth).map(_nest)
)


def _nest(objects_or_arrays: list[bool]) -> bytes:
    opened = b"".join(b'{"a":' if is_object else b"[" for is_object in objects_or_arrays)
    closed = b"".join(b"}" if is_object else b"]" for is_object in reversed(objects_or_arrays))
    return opened + b"1" + closed


@st.composite
def written(draw: st.DrawFn, content: st.SearchStrategy[Any] = values) -> bytes:
    """A JSON document in one of the styles in which serialisers write."""
    value = draw(content)
    style: dict[str, Any] = draw(
        st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}])
    )
    return json.dumps(value, **style).encode("utf-8")


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good ticket's bytes with one mutation: a piece put in, put over something, or cut, doubled, or flipped."""
    good = draw(written(tickets))
    at = draw(st.integers(0, len(good)))
    upto = draw(st.integers(at, min(len(good), at + 12)))
    piece = draw(st.sampled_from(_PIECES) | st.binary(max_size=3))
    twice = good[at:upto] * 2
    return good[:at] + draw(st.sampled_from([piece, b"", twice, piece + good[at:upto]])) + good[upto:]


@st.composite
def misshapen(draw: st.DrawFn) -> dict[str, Any]:
    """A good ticket with one field put wrong, taken away or added: JSON in any case."""
    ticket: dict[str, Any] = dict(draw(tickets))
    name = draw(
        st.sampled_from(["id", "state", "schema", "tenant", "idempotency_key", "received_at", "attributes"])
        | text
    )
    lengths = st.sampled_from([0, 1, 7, 8, 256, 257]).map(lambda length: "é" * length)
    wrong = draw(
        st.none()
        | values
        | times
        | lengths
        | st.sampled_from(["ticket/1", "ticket/2", "2026-02-30T00:00:00Z"])
    )
    if draw(st.booleans()):
        ticket[name] = wrong
    else:
        ticket.pop(name, None)
    return ticket


documents = st.one_of(st.binary(max_size=40), rows, nested, written(), mutated(), written(misshapen()))
