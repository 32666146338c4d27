"""Whatever bytes arrive, the decoder ends, agrees with a second reading of the rules, and loses nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from ticketgate.codecs import Malformed, Stage, Ticket, canonical, decode, decode_ticket, encode, fingerprint
from ticketgate.codecs.values.scan import explain

from ..support import examples, reference


def _expected(data: bytes) -> Any:
    try:
        return reference.value_of(data)
    except reference.Refused:
        return reference.Refused


def _agrees(data: bytes) -> None:
    """The property: taken exactly if the second reading takes it, as an equal value of equal types."""
    value = decode(data)
    expected = _expected(data)

    if isinstance(value, Malformed):
        assert expected is reference.Refused, value.reason
        assert value.stage is Stage.PARSE
        assert value.code != "out_of_range", "the walk found what the scan could not explain"
        assert 0 < len(value.reason) < 1_000
    else:
        # repr tells 1 from 1.0 and 0.0 from -0.0.
        assert repr(value) == repr(expected)
        assert explain(data) is None
        assert repr(decode(encode(value))) == repr(value)

    ticket = decode_ticket(data)
    if isinstance(value, Malformed):
        assert ticket == value
    else:
        assert isinstance(ticket, Ticket) is reference.is_ticket(expected)
        if isinstance(ticket, Malformed):
            assert ticket.stage is Stage.SCHEMA
            assert 0 < len(ticket.reason) < 5_000
        else:
            assert decode_ticket(encode(ticket.to_json())) == ticket


@examples.some
@given(examples.documents)
@example(b"")
@example(b" \r\n")
@example(b"\xef\xbb\xbf{}")
@example(b"\xff\xfe{\x00}\x00")
@example(b'{"id":"a","\\u0069d":"b"}')
@example(b"1" * 4300 + b"e-4300")
@example(b"1" * 4301 + b"e-4301")
@example(b"9" * 309 + b".0")
@example(b'"\\ud83d\\ud83d\\ude00"')
@example(b'{"id":"x","state":"","received_at":"0001-01-01T00:00:00+00:01"}')
@example(b'{"id":"x","state":"","received_at":"2026-01-01T24:00:00Z"}')
@example(b'{"id":"x","state":"","received_at":"2026-01-01T00:00:60Z"}')
def test_the_decoder_agrees_with_an_independent_reading(data: bytes) -> None:
    _agrees(data)


@pytest.mark.chaos
@examples.many
@given(examples.documents)
def test_the_decoder_agrees_with_an_independent_reading_50_000_times(data: bytes) -> None:
    _agrees(data)


@pytest.mark.chaos
@examples.many
@given(examples.mutated())
def test_a_ticket_with_one_mutation_agrees_with_an_independent_reading_50_000_times(data: bytes) -> None:
    _agrees(data)


@examples.some
@given(examples.tickets)
def test_a_good_ticket_is_taken_and_written_back_equal(sent: dict[str, Any]) -> None:
    ticket = decode_ticket(json.dumps(sent).encode())

    assert isinstance(ticket, Ticket)
    absent = {"schema": "ticket/1", "tenant": "", "attributes": {}}
    assert absent | ticket.to_json() == absent | sent
    assert decode_ticket(encode(ticket.to_json())) == ticket


def _shuffled(value: Any) -> Any:
    """`value` with every object's keys in the opposite order, and every integer-valued float as an integer."""
    if isinstance(value, dict):
        return {key: _shuffled(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [_shuffled(entry) for entry in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


@examples.some
@given(examples.objects, examples.objects)
@example({"a": -0.0}, {"a": 0})
@example({"a": 1.0}, {"a": 1})
def test_the_canonical_form_is_one_for_equal_values_and_another_for_others(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert canonical(one) == canonical(_shuffled(one))
    assert (canonical(one) == canonical(other)) is (_typed(one) == _typed(other))
    assert fingerprint(Ticket("a", one)) == fingerprint(Ticket("b", _shuffled(one), tenant="t"))


def _typed(value: Any) -> Any:
    """`value` with booleans told from numbers: Python holds True equal to 1."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return {key: _typed(entry) for key, entry in value.items()}
    return [_typed(entry) for entry in value] if isinstance(value, list) else value
