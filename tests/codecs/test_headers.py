"""Our headers, forgeries stripped, everybody else's untouched."""

from __future__ import annotations

import pytest
from ticketgate.codecs import (
    Coordinate,
    Malformed,
    Stage,
    dead_letter_headers,
    decision_headers,
    foreign,
    header,
)

from .test_decision import record

COORDINATE = Coordinate("tickets", 3, 17)


@pytest.mark.parametrize(
    "name",
    [
        "ticketgate-idempotency-key",
        "ticketgate-",
        "Ticketgate-Fingerprint",
        "TICKETGATE-anything",
        "tic\u212aetgate-key",
    ],
)
def test_a_forged_header_is_stripped_in_any_spelling(name: str) -> None:
    assert foreign([("a", b"1"), (name, b"forged"), ("b", b"2")]) == (("a", b"1"), ("b", b"2"))


def test_foreign_headers_pass_byte_for_byte_and_in_order() -> None:
    headers = (
        ("origin", b"\xc3("),
        ("origin", b""),
        ("traceparent", b"00-1"),
        ("x-ticketgate-key", b"mine"),
        ("", b"\x00"),
    )

    assert foreign(headers) == headers


def test_a_decision_carries_what_a_claim_is_rebuilt_from() -> None:
    decision = record()

    assert decision_headers(decision) == (
        ("ticketgate-idempotency-key", decision.idempotency_key.encode()),
        ("ticketgate-fingerprint", decision.fingerprint.encode()),
        ("ticketgate-coordinate", b"tickets:0:17"),
        ("ticketgate-schema", b"decision/1"),
    )


def test_a_dead_letter_says_why_and_where_in_utf_8() -> None:
    malformed = Malformed(Stage.PARSE, "duplicate_key", 'duplicate key "é" at $')

    assert dead_letter_headers(malformed, COORDINATE) == (
        ("ticketgate-error-stage", b"parse"),
        ("ticketgate-error-reason", 'duplicate key "é" at $'.encode()),
        ("ticketgate-error-code", b"duplicate_key"),
        ("ticketgate-coordinate", b"tickets:3:17"),
        ("ticketgate-schema", b"dead-letter/1"),
    )


def test_a_long_or_broken_reason_still_makes_a_header() -> None:
    reason = header(
        dead_letter_headers(Malformed(Stage.SCHEMA, "x", "\ud83d" * 9_999), COORDINATE),
        "ticketgate-error-reason",
    )

    assert reason is not None
    assert len(reason) < 10_000
    assert reason.decode("utf-8").endswith("(9999 characters)")


def test_the_last_header_of_a_name_counts() -> None:
    assert header([("a", b"1"), ("b", b"2"), ("a", b"3")], "a") == b"3"
    assert header([("a", b"1")], "b") is None
