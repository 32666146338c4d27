"""A decision record becomes a case for `policy test` that comes to the record's decision, or is told what it lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from ticketgate.agents.policy import Policy
from ticketgate.agents.workbench.policy.case_file import read_cases
from ticketgate.agents.workbench.policy.check import check
from ticketgate.agents.workbench.policy.recorded_case import RecordedCaseError, policy_case
from ticketgate.agents.workbench.policy.trial import run_cases
from ticketgate.codecs import (
    Coordinate,
    DecisionRecord,
    Effect,
    Fingerprint,
    IdempotencyKey,
    ModelRef,
    PolicyRef,
    Stage,
    Status,
    Verdict,
    decode,
    read_decision,
)

from ....support.deciding import LABELS, noul, policy, small

FACT = 'from = "attributes.customer.vip"'
MAPPED = small(
    f'[questions.vip]\ntype = "noul"\n{FACT}\n[[rules]]\nimplies = ["vip", "a"]\n[[effects]]\nwhen = "vip"\n'
    'tool = "greet"\narguments = { }\n'
)


def answered(*truths: float) -> dict[str, Any]:
    return {label: noul(truth) for label, truth in zip(LABELS, truths, strict=True)}


def recorded(given: dict[str, Any], under: Policy, *, with_ticket: bool = True) -> DecisionRecord:
    """What a worker writes of a ticket with these answers, as bytes and back."""
    decision = check(given, policy=under)
    ticket = {"id": "T-1", "state": given["state"], "attributes": given.get("attributes", {})}
    record = DecisionRecord(
        ticket_id="T-1",
        verdict=decision.verdict,
        selected=decision.selected,
        violations=decision.violations,
        probabilities=decision.probabilities,
        answers=decision.answers,
        truncated=decision.truncated,
        policy=PolicyRef(under.name, under.version, "ab"),
        model=ModelRef("m", "cd"),
        effects=tuple(Effect(each.tool, each.arguments, str(each.place)) for each in decision.effects),
        idempotency_key=IdempotencyKey("0f" * 32),
        fingerprint=Fingerprint("e1" * 32),
        coordinate=Coordinate("tickets", 0, 1),
        decided_at=datetime(2026, 9, 1, tzinfo=UTC),
        ticket=ticket if with_ticket else None,
    )
    read = read_decision(decode(record.encode()))  # type: ignore[arg-type]
    assert isinstance(read, DecisionRecord), read
    return read


@pytest.mark.parametrize("with_ticket", [True, False], ids=["with its ticket", "without"])
@pytest.mark.parametrize(
    ("text", "given", "status"),
    [
        (None, {"answers": answered(0.9, 0.9, 0.1, 1, 0), "state": "money"}, Status.ACCEPT),
        (None, {"answers": answered(0.9, 0.2, 0.1, 1, 1), "state": "money"}, Status.REVIEW),
        (None, {"answers": {"urgent": noul(7)}, "state": "money"}, Status.REVIEW),
        (
            MAPPED,
            {
                "answers": {name: noul(0.9) for name in "abc"},
                "state": "hello",
                "attributes": {"customer": {"vip": True}},
            },
            Status.ACCEPT,
        ),
    ],
    ids=["accepted", "violations", "answers that are none", "a fact"],
)
def test_a_case_made_of_a_record_comes_to_the_same_decision(
    text: str | None, given: dict[str, Any], status: Status, with_ticket: bool
) -> None:
    under = policy() if text is None else policy(text)
    record = recorded(given, under, with_ticket=with_ticket)
    assert record.verdict.status is status

    line = json.dumps(policy_case(record))

    (result,), _ = run_cases(read_cases(line, source="exported", policy=under), under)
    assert result.unmet == ()
    assert result.name == "T-1"


def test_a_record_that_no_policy_decided_is_told_apart() -> None:
    record = recorded({"answers": answered(0.9, 0.9, 0.1, 1, 0), "state": "money"}, policy())

    for changes, said in (
        ({"verdict": Verdict(Status.REVIEW, Stage.IDENTITY, ("collision",), "")}, "no policy's verdict"),
        ({"verdict": Verdict(Status.UNKNOWN, Stage.OUTCOME, (), "")}, "no policy's verdict"),
        ({"verdict": Verdict(Status.REVIEW, Stage.STATE, (), ""), "ticket": None}, "the ticket is not in"),
        ({"verdict": Verdict(Status.REVIEW, Stage.ANSWERS, (), ""), "answers": None}, "no object"),
    ):
        with pytest.raises(RecordedCaseError, match=said):
            policy_case(replace(record, effects=(), **changes))  # type: ignore[arg-type]
