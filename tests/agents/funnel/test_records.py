"""Proposals read strictly: every wrong field named at once, the request's too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ticketgate.codecs.records.proposal import (
    PROPOSAL_SCHEMA,
    Proposal,
    decode_proposal,
    read_proposal,
    read_request,
)
from ticketgate.codecs.values.malformed import Malformed

from ...support.funnel import request


def record(**changed: Any) -> dict[str, Any]:
    return {
        "schema": "proposal/1",
        "case_id": "case_1",
        "attempt": 1,
        "tenant": "t",
        "call": "{",
        "request": request().to_json(),
        **changed,
    }


def test_a_proposal_keeps_the_call_as_text_and_the_request_as_it_came() -> None:
    read = decode_proposal(json.dumps(record()).encode())

    assert PROPOSAL_SCHEMA == "proposal/1"
    assert read == Proposal(case_id="case_1", attempt=1, tenant="t", call="{", request=request())
    assert read_request(request().to_json()) == request()


def test_every_wrong_field_is_named_at_once() -> None:
    asked = {"operation": "", "values": {"amount": 1.5}, "colour": "red"}

    read = read_proposal(record(case_id="", attempt=0, call={}, request=asked, more=1))

    assert isinstance(read, Malformed)
    assert read.stage == "schema"
    for part in (
        '"case_id"',
        '"attempt"',
        '"call"',
        '"more"',
        'in "request"',
        '"operation"',
        '"actor_id"',
        '"values"',
    ):
        assert part in read.reason
    assert 'unknown field "colour"' in read.reason


@pytest.mark.parametrize("value", [None, [], "text", record(schema="proposal/2"), record(request=None)])
def test_what_is_no_proposal_is_refused(value: Any) -> None:
    assert isinstance(read_proposal(value), Malformed)


def test_a_field_bound_twice_contradicts_itself() -> None:
    asked = {**request().to_json(), "conditions": {"amount_gbp": "1.00"}}

    read = read_proposal(record(request=asked))

    assert isinstance(read, Malformed)
    assert "amount_gbp" in read.reason
    assert "contradiction" in read.code


@pytest.mark.parametrize("data", [b"", b"\xff", b"{", b'{"attempt": NaN}'])
def test_bytes_that_are_no_json_are_refused_at_parse(data: bytes) -> None:
    read = decode_proposal(data)

    assert isinstance(read, Malformed)
    assert read.stage == "parse"
