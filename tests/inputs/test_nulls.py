"""Null where a field may be left out says what leaving it out says; it is never written by us, and never text."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ticketgate.codecs.records.identity import fingerprint, proposal_fingerprint, proposal_key, ticket_key
from ticketgate.codecs.records.proposal import Proposal, read_proposal
from ticketgate.codecs.records.published import schema_files
from ticketgate.codecs.records.ticket import Ticket, read_ticket
from ticketgate.codecs.values.malformed import Malformed

from tests.support.examples import some

TICKET = {
    "id": "T-1",
    "state": "x",
    "schema": "ticket/1",
    "tenant": "acme",
    "idempotency_key": "key-of-T-1",
    "received_at": "2026-11-30T00:00:00Z",
    "attributes": {"vip": None},
}
REQUEST = {
    "operation": "schedule",
    "actor_id": "a",
    "roles": ["agent"],
    "purpose": "p",
    "phase": "open",
    "version": 2,
    "values": {"account_id": "acct"},
    "conditions": {"minimum": "1.00"},
    "control": {"idempotency_key": "k"},
    "channel": "app",
}
PROPOSAL = {
    "case_id": "case-1",
    "attempt": 1,
    "call": "{}",
    "schema": "proposal/1",
    "tenant": "acme",
    "model": {"id": "m", "version": "1"},
    "signed": {"authority": "e30.e30.c2ln"},
    "request": REQUEST,
}
TICKETS_OPTIONAL = sorted(TICKET.keys() - {"id", "state"})
PROPOSALS_OPTIONAL = sorted(PROPOSAL.keys() - {"case_id", "attempt", "call", "request"})
REQUESTS_OPTIONAL = sorted(REQUEST.keys() - {"operation", "actor_id"})


@cache
def published(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_files()[name]))


def without(record: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


@some
@given(st.sets(st.sampled_from(TICKETS_OPTIONAL), min_size=1))
def test_null_in_a_ticket_is_absence(names: set[str]) -> None:
    written, left_out = {**TICKET, **dict.fromkeys(names)}, without(TICKET, names)

    read, plain = read_ticket(written), read_ticket(left_out)

    assert isinstance(read, Ticket), read
    assert isinstance(plain, Ticket)
    assert read == plain
    assert None not in read.to_json().values()
    assert fingerprint(read) == fingerprint(plain)
    assert ticket_key("n", read) == ticket_key("n", plain)
    assert published("ticket-1.json").is_valid(written)


@some
@given(
    st.sets(st.sampled_from(PROPOSALS_OPTIONAL)),
    st.sets(st.sampled_from(REQUESTS_OPTIONAL), min_size=1),
    st.sampled_from(["values", "conditions", "control"]),
)
def test_null_in_a_proposal_is_absence_and_so_in_what_its_request_binds(
    names: set[str], asked: set[str], table: str
) -> None:
    left_out = without(PROPOSAL, names) | {"request": without(REQUEST, asked)}
    request: dict[str, Any] = {**REQUEST, **dict.fromkeys(asked)}
    if request[table] is not None:
        request[table] = {**request[table], "more": None}
    written: dict[str, Any] = {**PROPOSAL, **dict.fromkeys(names), "request": request}

    read, plain = read_proposal(written), read_proposal(left_out)

    assert isinstance(read, Proposal), read
    assert isinstance(plain, Proposal)
    assert read == plain
    assert "null" not in json.dumps(read.to_json())
    assert proposal_fingerprint(read) == proposal_fingerprint(plain)
    assert proposal_key("n", read.tenant, read.case_id, 1) == proposal_key(
        "n", plain.tenant, plain.case_id, 1
    )
    assert published("proposal-1.json").is_valid(written)


def test_null_inside_of_a_model_or_of_what_is_signed_is_absence() -> None:
    read = read_proposal(
        {**PROPOSAL, "model": {"id": "m", "version": None}, "signed": {"world": None, "authority": None}}
    )

    assert isinstance(read, Proposal), read
    assert read.to_json().get("model") == {"id": "m"}
    assert "signed" not in read.to_json()


@pytest.mark.parametrize("name", ["id", "state"])
def test_null_where_something_must_stand_is_still_refused(name: str) -> None:
    assert isinstance(read_ticket({**TICKET, "tenant": None}), Ticket)
    refused = read_ticket({**TICKET, "tenant": None, name: None})

    assert isinstance(refused, Malformed)
    assert refused.code == "null_field"
    assert not published("ticket-1.json").is_valid({**TICKET, name: None})
