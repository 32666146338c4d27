"""Settlements and what became of them: read back as written, refused whole by name, signed and told apart whole."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.codecs import (
    Action,
    Coordinate,
    Fingerprint,
    Malformed,
    Outcome,
    SettledByPerson,
    SettledRecord,
    Settlement,
    Stage,
    Status,
    Verdict,
    decode,
    decode_settled,
    decode_settlement,
    encode,
    read_decision,
    settlement_fingerprint,
    settlement_key,
)

from ..support.settlements import AT, KEY, UUID, settlement
from .test_decision import record as decision

SIGNATURE = "eyJhbGciOiJIUzI1NiJ9..c2lnbmVk"
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
hexes = st.text("0123456789abcdef", min_size=64, max_size=64)
places = st.builds(
    Coordinate, st.sampled_from(["review", "a.b-c"]), st.integers(0, 99), st.integers(0, 2**62)
)
settlements = st.builds(
    lambda action, labels, **fields: settlement(
        action=action, labels=tuple(sorted(set(labels))), signature=SIGNATURE, **fields
    ),
    st.sampled_from(Action),
    st.lists(texts, max_size=4),
    ticket_id=texts,
    key=hexes,
    review=places,
    review_sha256=hexes,
    policy=hexes,
    effects=hexes,
    why=st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    by=st.text("abz09._-", min_size=1, max_size=20),
)


def settled(**changes: Any) -> SettledRecord:
    fields: dict[str, Any] = {
        "id": UUID,
        "ticket_id": "T-1",
        "tenant": "",
        "key": KEY,
        "outcome": Outcome.VOID,
        "code": "effects_differ",
        "reasons": ("the effects are not those that were shown",),
        "action": Action.ACCEPT,
        "labels": ("billing",),
        "review": Coordinate("review", 0, 7),
        "review_sha256": "ab" * 32,
        "why": "",
        "by": "p-1",
        "at": AT,
        "policy": "cd" * 32,
        "owner": None,
        "idempotency_key": settlement_key(KEY),
        "fingerprint": Fingerprint("e1" * 32),
        "coordinate": Coordinate("settlements", 0, 2),
        "decided_at": AT,
    }
    return SettledRecord(**(fields | changes))


@given(settlements)
def test_a_settlement_is_read_back_as_it_was_written(given_one: Settlement) -> None:
    found = decode_settlement(given_one.encode())

    assert found == given_one
    assert isinstance(found, Settlement)
    assert found.said == given_one.said
    assert decode_settlement(encode(json.loads(given_one.encode()))) == given_one


@given(settlements, settlements)
def test_what_is_signed_and_told_apart_is_all_that_is_said(one: Settlement, other: Settlement) -> None:
    other = replace(other, signature="a..b")
    is_same = replace(one, signature="") == replace(other, signature="")

    assert (one.said == other.said) is is_same
    assert (settlement_fingerprint(one) == settlement_fingerprint(other)) is is_same


@pytest.mark.parametrize(
    "change",
    [
        {"labels": ["urgent"]},
        {"why": "x"},
        {"by": "p-2"},
        {"action": "reject"},
        {"review_sha256": "ac" * 32},
        {"effects": "ac" * 32},
        {"policy": "ac" * 32},
        {"expires_at": "2027-11-29T18:00:00.000Z"},
        {"at": "2026-11-29T18:00:00.001Z"},
        {"key": "1f" * 32},
        {"ticket_id": "T-2"},
        {"id": UUID.replace("8", "9")},
        {"review": {"topic": "review", "partition": 0, "offset": 8}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_no_field_can_be_altered_unseen(change: dict[str, Any]) -> None:
    document = json.loads(settlement(signature=SIGNATURE).encode()) | change
    if document["action"] == "reject":
        for name in ("labels", "policy", "effects"):
            del document[name]

    found = decode_settlement(encode(document))

    assert isinstance(found, Settlement), found
    assert found.said != settlement().said


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"id": "no-uuid"}, '"id"'),
        ({"action": "approve"}, '"action"'),
        ({"key": "short"}, '"key"'),
        ({"signature": "a.b.c"}, '"signature"'),
        ({"by": "Jane Doe"}, '"by"'),
        ({"at": "yesterday"}, '"at"'),
        ({"review": {"topic": "review", "partition": -1, "offset": 0}}, '"review"'),
        ({"labels": ["b", "a"]}, "sorted"),
        ({"labels": ["a", "a"]}, "sorted"),
        ({"action": "reject"}, "belong to what is accepted alone"),
        ({"more": 1}, '"more"'),
    ],
)
def test_what_is_no_settlement_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    found = decode_settlement(encode(json.loads(settlement(signature=SIGNATURE).encode()) | change))

    assert isinstance(found, Malformed)
    assert found.stage is Stage.SCHEMA
    assert named in found.reason


def test_what_is_accepted_names_policy_and_effects() -> None:
    document = json.loads(settlement(signature=SIGNATURE).encode())
    del document["policy"]

    found = decode_settlement(encode(document))

    assert isinstance(found, Malformed)
    assert "names the policy and the effects" in found.reason


def test_an_unsigned_settlement_is_none() -> None:
    found = decode_settlement(settlement().encode())

    assert isinstance(found, Malformed)
    assert "signature" in found.reason


@pytest.mark.parametrize("outcome", Outcome)
def test_what_became_of_it_is_read_back(outcome: Outcome) -> None:
    record = settled(
        outcome=outcome,
        code="" if outcome.takes_effect else "already_settled",
        owner=None if outcome.takes_effect else Coordinate("settlements", 0, 1),
    )

    assert decode_settled(record.encode()) == record


def test_what_took_effect_has_no_code_and_what_did_not_has_one() -> None:
    with pytest.raises(ValueError, match="void"):
        settled(code="")
    with pytest.raises(ValueError, match="accepted"):
        settled(outcome=Outcome.ACCEPTED)
    assert isinstance(decode_settled(encode(settled().to_json() | {"code": ""})), Malformed)
    assert isinstance(decode_settled(b"[]"), Malformed)


def test_a_decision_says_that_a_person_decided_and_an_older_reader_may_ignore_it() -> None:
    block = SettledByPerson(
        settlement=UUID,
        by="p-1",
        at=AT + timedelta(minutes=1),
        review=Coordinate("review", 0, 7),
        review_sha256="ab" * 32,
        reviewed=Verdict(Status.REVIEW, Stage.POLICY, ("urgent requires review",), "a person decides"),
        selected=("urgent",),
    )
    record = decision(settled=block)

    found = decode(record.encode())

    assert isinstance(found, dict)
    assert read_decision(found) == record
    assert list(found)[-1] == "settled"
    assert read_decision({name: value for name, value in found.items() if name != "settled"}) == decision()
