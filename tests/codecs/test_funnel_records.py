"""Proposals, case decisions and receipts: read back as written, whole or refused by name, open to later writers."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from ticketgate.codecs import (
    CASE_DECISION_SCHEMA,
    CaseDecision,
    Coordinate,
    DecisionReceipt,
    DecisionRecord,
    EffectReceipt,
    EffectState,
    EffectStatus,
    Malformed,
    Proposal,
    ProposerModel,
    SettledBy,
    Signed,
    decision_headers,
    decode,
    decode_case_decision,
    decode_proposal,
    decode_receipt,
    encode,
    proposal_fingerprint,
    read_case_decision,
    read_dispatched,
    read_proposal,
    read_receipt,
    receipt_headers,
    receipt_key,
)
from ticketgate.codecs.records.request import read_request

from ..support.examples import some
from ..support.funnel_records import (
    DENIED,
    REPAIR,
    REQUEST,
    STANDING,
    STOPPED,
    TO_MEND,
    case_decision,
    case_decisions,
    decision_receipt,
    decision_receipts,
    effect_receipt,
    effect_receipts,
    proposal,
    proposals,
)
from .test_decision import record as ticket_decision

KEY = b"0f" * 32


@some
@given(proposals)
def test_a_proposal_is_read_back_as_it_was_written(written: Proposal) -> None:
    assert decode_proposal(encode(written.to_json())) == written


@some
@given(case_decisions)
def test_a_case_decision_is_read_back_as_it_was_written(written: CaseDecision) -> None:
    assert decode_case_decision(written.encode()) == written


@some
@given(decision_receipts | effect_receipts)
def test_a_receipt_is_read_back_as_it_was_written(written: DecisionReceipt | EffectReceipt) -> None:
    assert decode_receipt(written.encode()) == written


# --- proposals ---


def test_the_model_and_what_is_signed_stand_on_the_wire_only_if_they_are_said() -> None:
    assert not {"model", "signed"} & proposal().to_json().keys()
    said = proposal(model=ProposerModel("m", "2"), signed=Signed(authority="e30.e30.c2ln")).to_json()
    assert said["model"] == {"id": "m", "version": "2"}
    assert said["signed"] == {"authority": "e30.e30.c2ln"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "gpt"),
        ("model", {"version": "1"}),
        ("model", {"id": ""}),
        ("model", {"id": "m", "vendor": "x"}),
        ("model", 7),
        ("signed", {"authority": "no token"}),
        ("signed", {"authority": "e30.e30.c2ln\n"}),
        ("signed", {"facts": "e30.e30.c2ln"}),
        ("signed", {"world": 7}),
    ],
)
def test_a_wrong_model_or_token_is_refused_by_its_field(field: str, value: Any) -> None:
    read = read_proposal(proposal().to_json() | {field: value})

    assert isinstance(read, Malformed)
    assert f'"{field}"' in read.reason


@pytest.mark.parametrize(
    ("value", "stands"), [(19.9, "the number 19.9"), ([], "an array"), ({"amount": "19.90"}, "an object")]
)
def test_a_value_that_no_request_binds_is_named_by_its_place(value: Any, stands: str) -> None:
    malformed = read_request({"operation": "credit", "actor_id": "a", "values": {"amount": value}})

    assert isinstance(malformed, Malformed)
    assert malformed.reason == (
        '"values" must be an object of texts, whole numbers, true or false: '
        f'at "values.amount" stands {stands}'
    )


def test_a_fingerprint_is_of_the_call_and_the_whole_request_alone() -> None:
    # Pinned: claims rest on it.
    mine = proposal_fingerprint(proposal())

    assert mine == "205471d2ee036e99fa615cbb2d793fdb32d25315375e846be84357369087dd51"
    same = [
        proposal(model=ProposerModel("m")),
        proposal(signed=Signed(world="e30.e30.c2ln")),
        proposal(attempt=2, case_id="C-2", tenant="t"),
    ]
    assert {proposal_fingerprint(each) for each in same} == {mine}
    assert proposal_fingerprint(proposal(call="{}")) != mine


# --- case decisions ---


def test_a_case_decision_is_written_in_the_documented_order() -> None:
    assert list(json.loads(case_decision().encode())) == [
        "schema", "case_id", "attempt", "tenant", "verdict", "tool", "arguments", "catalogue", "evidence", "model",
        "effects", "repair", "idempotency_key", "fingerprint", "coordinate", "decided_at", "proposal",
    ]  # fmt: skip


def test_an_accepted_effect_can_be_judged_again_from_its_record() -> None:
    told = proposal(model=ProposerModel("proposer", "3"), signed=Signed(world="e30.e30.c2ln"), tenant="t")

    read = read_dispatched(decode(case_decision(tenant="t").encode()))  # type: ignore[arg-type]

    assert isinstance(read, CaseDecision)
    assert read.proposed() == told
    assert case_decision(verdict=DENIED, effects=(), proposal=None).proposed() is None


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": DENIED},
        {"proposal": None},
        {"verdict": TO_MEND, "effects": ()},
        {"decided_at": datetime(2026, 9, 1)},  # noqa: DTZ001 - without a zone is the case
    ],
    ids=["effects of a denial", "effects without a proposal", "a repair without its receipt", "no zone"],
)
def test_a_case_decision_that_contradicts_itself_is_not_made(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        case_decision(**changes)


def test_fields_of_a_later_writer_are_ignored_at_every_level() -> None:
    written = case_decision(verdict=TO_MEND, effects=(), repair=REPAIR)
    value: Any = decode(written.encode())
    value["more"] = 1
    for name in ("verdict", "catalogue", "model", "coordinate", "repair", "proposal", "evidence"):
        value[name]["more"] = 1
    value["proposal"]["request"]["more"] = value["proposal"]["signed"]["more"] = 1
    value["repair"]["catalogue"]["more"] = value["repair"]["model"]["more"] = 1

    assert read_case_decision(value) == written

    stopped = effect_receipt(settled_by=SettledBy("ann", "seen"), **STOPPED)
    receipt: Any = decode(stopped.encode())
    for name in ("source", "verdict", "settled_by", "judged_again"):
        receipt[name]["more"] = 1
    receipt["more"] = receipt["judged_again"]["evidence"]["more"] = 1
    assert read_receipt(receipt) == stopped


def test_what_is_dispatched_is_read_by_its_schema() -> None:
    ticket = ticket_decision()

    assert isinstance(read_dispatched(ticket.to_json()), DecisionRecord)
    assert isinstance(read_dispatched(case_decision().to_json()), CaseDecision)
    for other in (None, [], {}, {"schema": 1}, {"schema": "case-decision/2"}, {"schema": "receipt/1"}):
        assert isinstance(read_dispatched(other), Malformed)  # type: ignore[arg-type]


def test_every_wrong_field_of_a_case_decision_is_named() -> None:
    value: Any = case_decision().to_json()
    del value["fingerprint"]
    value["attempt"] = 0
    value["evidence"] = {"authority": None}
    value["proposal"] = {"call": "{"}

    read = read_case_decision(value)

    assert isinstance(read, Malformed)
    for name in ("fingerprint", "attempt", "evidence", "proposal"):
        assert f'"{name}"' in read.reason


# --- receipts ---


def test_a_receipt_says_its_schema_first_and_then_its_kind() -> None:
    for receipt in (decision_receipt(), effect_receipt()):
        assert list(receipt.to_json())[:2] == ["schema", "kind"]
    assert decision_receipt().to_json()["effect_created"] is False
    assert "effect_created" not in decision_receipt(effect_created=None).to_json()


def test_what_an_effect_was_stopped_on_stands_only_where_it_was() -> None:
    assert "judged_again" not in effect_receipt().to_json()
    assert effect_receipt(**STOPPED).to_json()["judged_again"] == {
        "evidence": case_decision(evidence=STOPPED["judged_again"].evidence).to_json()["evidence"],
        "at": "2026-09-01T12:00:00.000Z",
    }


@pytest.mark.parametrize(
    "wrong",
    [None, {}, {"evidence": {}, "at": "2026-09-01T12:00:00Z"}, {"evidence": None, "at": "yesterday"}],
)
def test_a_second_look_that_is_not_whole_is_refused_by_name(wrong: Any) -> None:
    read = read_receipt(effect_receipt(**STOPPED).to_json() | {"judged_again": wrong})

    assert isinstance(read, Malformed)
    assert '"judged_again"' in read.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"status": EffectStatus.CREATED},
        {"effect_state": EffectState.COMMITTED},
        {"at": datetime(2026, 9, 1)},  # noqa: DTZ001 - without a zone is the case
    ],
)
def test_an_effect_receipt_that_contradicts_itself_is_neither_made_nor_read(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        effect_receipt(**changes)

    value = effect_receipt().to_json() | {name: str(change) for name, change in changes.items()}
    assert isinstance(read_receipt(value), Malformed)


@pytest.mark.parametrize("kind", [None, "repair_receipt", 1])
def test_an_unknown_kind_of_receipt_is_refused_by_name(kind: Any) -> None:
    read = read_receipt(effect_receipt().to_json() | {"kind": kind})

    assert isinstance(read, Malformed)
    assert '"kind" must be "decision_receipt" or "effect_receipt"' in read.reason


def test_times_are_kept_in_milliseconds() -> None:
    moment = datetime.fromisoformat("2026-09-01T14:00:00.123999+02:00")

    assert effect_receipt(at=moment).to_json()["at"] == "2026-09-01T12:00:00.123Z"
    assert effect_receipt(at=moment) == effect_receipt(at=moment - timedelta(microseconds=999))


def test_records_carry_their_identity_in_headers() -> None:
    assert decision_headers(case_decision(), schema=CASE_DECISION_SCHEMA) == (
        ("ticketgate-idempotency-key", KEY),
        ("ticketgate-fingerprint", b"e1" * 32),
        ("ticketgate-coordinate", b"proposals:0:17"),
        ("ticketgate-schema", b"case-decision/1"),
    )
    assert receipt_headers(effect_receipt(**STANDING)) == (
        ("ticketgate-idempotency-key", b"pay-600-1"),
        ("ticketgate-coordinate", b"dispatch:0:4"),
        ("ticketgate-schema", b"receipt/1"),
    )
    assert receipt_headers(decision_receipt(idempotency_key=None, source=Coordinate("proposals", 1, 2))) == (
        ("ticketgate-coordinate", b"proposals:1:2"),
        ("ticketgate-schema", b"receipt/1"),
    )


def test_receipts_are_keyed_by_the_effect_else_by_the_case() -> None:
    assert receipt_key(effect_receipt()) == "pay-600-1"
    assert receipt_key(decision_receipt()) == "C-1"


def test_a_request_in_a_record_keeps_to_its_form() -> None:
    value: Any = case_decision().to_json()
    value["proposal"]["request"] = REQUEST.to_json() | {"version": 0}

    assert isinstance(read_case_decision(value), Malformed)
