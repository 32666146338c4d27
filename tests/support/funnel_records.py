"""Builders and Hypothesis strategies of the funnel's records: proposals, case decisions, receipts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from ticketgate.codecs import (
    CaseDecision,
    CatalogueRef,
    Coordinate,
    DecisionReceipt,
    Effect,
    EffectReceipt,
    EffectState,
    EffectStatus,
    Fingerprint,
    IdempotencyKey,
    JudgedAgain,
    Proposal,
    ProposedCall,
    ProposerModel,
    RepairReceipt,
    Request,
    SettledBy,
    Signed,
    Stage,
    Status,
    StopReason,
    Verdict,
)

from .examples import objects, text

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)
CATALOGUE = CatalogueRef("payments", "1", "ab" * 32)
REQUEST = Request(
    operation="schedule",
    actor_id="user_demo",
    roles=("customer",),
    values={"account_id": "acct_demo", "amount_gbp": "600.00"},
    control={"idempotency_key": "pay-600-1"},
)
ACCEPTED = Verdict(
    Status.ACCEPT, Stage.AUTHORITY, (), "the effect is carried out under its key and read back"
)
DENIED = Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "an authorised actor decides")
TO_MEND = Verdict(
    Status.REPAIR, Stage.SCHEMA, ("wrong_type:amount_gbp",), "the proposer mends the named fields alone"
)
UNKNOWN = Verdict(
    Status.UNKNOWN, Stage.OUTCOME, ("timeout_and_no_readback",), "held until reading back settles it"
)
EFFECT = Effect("schedule_transfer", {"amount_gbp": "600.00"}, "pay-600-1")
REPAIR = RepairReceipt(
    stage="schema",
    codes=("wrong_type:amount_gbp",),
    source_of_truth="catalogue",
    permitted=("amount_gbp",),
    anchors={"amount_gbp": "600.00"},
    before={},
    after={},
    catalogue=CATALOGUE,
    attempt=1,
    maximum=1,
    remaining=0,
    model=ProposerModel("proposer", "3"),
)


def proposal(**changes: Any) -> Proposal:
    fields: dict[str, Any] = {"case_id": "C-1", "attempt": 1, "call": '{"call_id":"c_1"}', "request": REQUEST}
    return Proposal(**(fields | changes))


def case_decision(**changes: Any) -> CaseDecision:
    """An accepted effect unless told."""
    fields: dict[str, Any] = {
        "case_id": "C-1",
        "attempt": 1,
        "verdict": ACCEPTED,
        "tool": "schedule_transfer",
        "arguments": {"amount_gbp": "600.00"},
        "catalogue": CATALOGUE,
        "evidence": {
            "authority": {"actor_id": "user_demo", "version": "a1"},
            "world": {"facts": {"current_balance_gbp": "3000.00"}, "version": "w1"},
        },
        "model": ProposerModel("proposer", "3"),
        "effects": (EFFECT,),
        "idempotency_key": IdempotencyKey("0f" * 32),
        "fingerprint": Fingerprint("e1" * 32),
        "coordinate": Coordinate("proposals", 0, 17),
        "decided_at": AT,
        "proposal": ProposedCall(
            call='{"call_id":"c_1"}', request=REQUEST, signed=Signed(world="e30.e30.c2ln")
        ),
    }
    return CaseDecision(**(fields | changes))


def decision_receipt(**changes: Any) -> DecisionReceipt:
    """Of a quote unless told."""
    fields: dict[str, Any] = {
        "case_id": "C-1",
        "attempt": 1,
        "tenant": "",
        "request": REQUEST,
        "verdict": Verdict(Status.ACCEPT, Stage.OUTCOME, (), "the observation may be made"),
        "catalogue": CATALOGUE,
        "evidence": {"authority": "a1", "world": "w1"},
        "tool": "quote_transfer",
        "arguments": {"amount_gbp": "600.00"},
        "effect_created": False,
        "model": ProposerModel("proposer", "3"),
        "idempotency_key": IdempotencyKey("0f" * 32),
        "fingerprint": Fingerprint("e1" * 32),
        "source": Coordinate("proposals", 0, 17),
        "at": AT,
    }
    return DecisionReceipt(**(fields | changes))


def effect_receipt(**changes: Any) -> EffectReceipt:
    """Of a held outcome unless told."""
    fields: dict[str, Any] = {
        "status": None,
        "tool": "schedule_transfer",
        "arguments": {"amount_gbp": "600.00"},
        "provider_id": None,
        "idempotency_key": "pay-600-1",
        "state": {},
        "effect_state": EffectState.UNKNOWN,
        "sequence": 2,
        "sends": 1,
        "provider": "bank",
        "source": Coordinate("dispatch", 0, 4),
        "subject": "C-1",
        "verdict": UNKNOWN,
        "at": AT,
    }
    return EffectReceipt(**(fields | changes))


STOPPED: dict[str, Any] = {
    "effect_state": EffectState.REJECTED,
    "sends": 0,
    "verdict": DENIED,
    "judged_again": JudgedAgain(
        {
            "authority": {"actor_id": "user_demo", "tools": [], "version": "a2"},
            "world": {"facts": {"current_balance_gbp": "3000.00"}, "version": "w2"},
        },
        AT,
    ),
}
STANDING: dict[str, Any] = {
    "status": EffectStatus.VERIFIED_BY_READBACK,
    "provider_id": "tr_0001",
    "state": {"amount_gbp": "600.00", "status": "committed"},
    "effect_state": EffectState.COMMITTED,
    "sequence": 3,
    "verdict": Verdict(
        Status.ACCEPT, Stage.READBACK, ("transport_timed_out_after_commit",), "the effect stands as asked for"
    ),
}

_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_scalars = text | st.integers(-(2**63), 2**63 - 1) | st.booleans()
_tables = st.dictionaries(text, _scalars, max_size=3)
_moments = st.datetimes(timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
_coordinates = st.builds(Coordinate, st.just("t"), st.integers(0, 9), st.integers(0, 2**63 - 1))
_verdicts = st.builds(
    Verdict,
    st.sampled_from([Status.REVIEW, Status.REJECT, Status.DENY, Status.UNKNOWN]),
    st.sampled_from(Stage),
    st.lists(text, max_size=3).map(tuple),
    text,
)
_catalogues = st.builds(CatalogueRef, text, text, text)
_models = st.builds(ProposerModel, _names, text)
_tokens = st.none() | st.from_regex(
    r"[A-Za-z0-9_-]{1,8}\.[A-Za-z0-9_-]{0,8}\.[A-Za-z0-9_-]{1,8}", fullmatch=True
)
_signed = st.builds(Signed, authority=_tokens, world=_tokens)
# Tables that share no name: a field is bound once.
requests = st.builds(
    Request,
    operation=_names,
    actor_id=_names,
    roles=st.lists(text, max_size=2).map(tuple),
    purpose=text,
    phase=text,
    version=st.integers(1, 2**40),
    values=_tables.map(lambda table: {f"v{name}": value for name, value in table.items()}),
    conditions=_tables.map(lambda table: {f"c{name}": value for name, value in table.items()}),
    control=_tables.map(lambda table: {f"k{name}": value for name, value in table.items()}),
)
proposals = st.builds(
    Proposal,
    case_id=_names,
    attempt=st.integers(1, 1_000_000),
    call=text,
    request=requests,
    tenant=text,
    model=st.none() | _models,
    signed=_signed,
)
repairs = st.builds(
    RepairReceipt,
    stage=text,
    codes=st.lists(text, max_size=3).map(tuple),
    source_of_truth=text,
    permitted=st.lists(text, max_size=3).map(tuple),
    anchors=_tables,
    before=objects,
    after=objects,
    catalogue=_catalogues,
    attempt=st.integers(1, 99),
    maximum=st.integers(0, 9),
    remaining=st.integers(0, 9),
    model=st.none() | _models,
    stop_reason=st.none() | st.sampled_from(StopReason),
)
_evidence = st.fixed_dictionaries(
    {"authority": st.none() | objects, "world": objects},
    optional={"unreadable": st.lists(text, max_size=2)},
)
case_decisions = st.builds(
    CaseDecision,
    case_id=_names,
    attempt=st.integers(1, 1_000_000),
    tenant=text,
    verdict=_verdicts,
    tool=st.none() | text,
    arguments=objects,
    catalogue=_catalogues,
    evidence=_evidence,
    model=st.none() | _models,
    repair=st.none() | repairs,
    idempotency_key=text.map(IdempotencyKey),
    fingerprint=text.map(Fingerprint),
    coordinate=_coordinates,
    decided_at=_moments,
    proposal=st.none() | st.builds(ProposedCall, call=text, request=requests, signed=_signed),
)
decision_receipts = st.builds(
    DecisionReceipt,
    case_id=_names,
    attempt=st.integers(1, 1_000_000),
    tenant=text,
    request=requests,
    verdict=_verdicts,
    catalogue=_catalogues,
    evidence=st.dictionaries(text, text, max_size=2),
    tool=st.none() | text,
    arguments=objects,
    effect_created=st.sampled_from([None, False]),
    model=st.none() | _models,
    idempotency_key=st.none() | text.map(IdempotencyKey),
    fingerprint=st.none() | text.map(Fingerprint),
    source=st.none() | _coordinates,
    at=st.none() | _moments,
)
effect_receipts = st.sampled_from(EffectState).flatmap(
    lambda state: st.builds(
        EffectReceipt,
        status=st.sampled_from(EffectStatus) if state is EffectState.COMMITTED else st.none(),
        tool=text,
        arguments=objects,
        provider_id=st.none() | text,
        idempotency_key=_names,
        state=objects,
        effect_state=st.just(state),
        sequence=st.integers(0, 2**40),
        sends=st.integers(0, 2),
        provider=text,
        source=st.none() | _coordinates,
        subject=text,
        verdict=st.none() | _verdicts,
        settled_by=st.none() | st.builds(SettledBy, text, text),
        judged_again=st.none() | st.builds(JudgedAgain, st.none() | _evidence, _moments),
        at=st.none() | _moments,
    )
)
