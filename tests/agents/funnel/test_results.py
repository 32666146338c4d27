"""What an observation brings, the channel that an effect is asked for through, a provider that is not idempotent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.file.catalogue_file import CatalogueError, example, parse_catalogue
from ticketgate.agents.workbench.funnel.cases import CaseResult, read_cases, run_cases

PAYMENTS = example("payments.toml")
LINES = [json.loads(line) for line in example("payments.jsonl").splitlines()]
QUOTE, SCHEDULE = LINES[0], LINES[4]


def run(line: Any, text: str = PAYMENTS) -> CaseResult:
    cases = read_cases(
        json.dumps({**line, "expect": {"status": "accept", "stage": "outcome"}}), source="test"
    )
    (result,) = asyncio.run(run_cases(cases, catalogue=parse_catalogue(text), provider=MemoryProvider()))
    return result


def said(result: CaseResult) -> tuple[str, str, tuple[str, ...]]:
    verdict = result.outcome.verdict
    return str(verdict.status), str(verdict.stage), verdict.reasons


def test_a_quote_has_its_fee() -> None:
    result = run(QUOTE)

    assert said(result) == ("accept", "outcome", ())
    assert result.outcome.decision.result == {"fee_gbp": "1.70"}
    assert result.outcome.decision.to_json()["result"] == {"fee_gbp": "1.70"}
    assert result.outcome.effect is None


@pytest.mark.parametrize(
    ("amount", "fee"), [("0.01", "0.50"), ("2.50", "0.50"), ("7.50", "0.52"), ("999.99", "2.50")]
)
def test_the_fee_is_worked_out_to_two_places(amount: str, fee: str) -> None:
    line = json.loads(json.dumps(QUOTE).replace("600.00", amount))

    assert run(line).outcome.decision.result == {"fee_gbp": fee}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"fee_gbp": "1.70"}, ("accept", ())),
        ({}, ("review", ("fact_unknown:fee_gbp",))),
        ({"fee_gbp": 2}, ("review", ("result_unknown:fee_gbp:not of the type money",))),
        ({"fee_gbp": "99.00"}, ("review", ("result_unknown:fee_gbp:must be at most 10.00, not 99.00",))),
    ],
)
def test_a_result_that_is_looked_up_is_verified(facts: Any, expected: Any) -> None:
    text = PAYMENTS.replace(
        'of = "amount_gbp"\ntimes = "0.002"\nplus = "0.50"', 'fact = "fee_gbp"\nat_most = "10.00"'
    )
    result = run({**QUOTE, "world": {"facts": facts}}, text)

    status, _, reasons = said(result)
    assert (status, reasons) == expected
    assert result.outcome.decision.result == ({"fee_gbp": "1.70"} if status == "accept" else {})


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ('of = "payee_id"', "gives no amount"),
        ('of = "amount_gbp"\nfact = "fee"', "a result has fact, or of"),
        ('says = "x"', "a result has fact, or of"),
        ('of = "amount_gbp"\ntimes = "0.2%"', "times"),
    ],
)
def test_a_result_that_cannot_be_had_is_refused(written: str, what: str) -> None:
    text = PAYMENTS.replace(
        'of = "amount_gbp"\ntimes = "0.002"\nplus = "0.50"\nsays = "what the transfer would cost"', written
    )

    with pytest.raises(CatalogueError, match=what):
        parse_catalogue(text)


@pytest.mark.parametrize(
    ("channel", "in_catalogue", "in_authority", "reasons"),
    [
        ("", None, None, ()),
        ("phone", None, None, ()),
        ("app", ["app"], None, ()),
        ("phone", ["app"], None, ("channel_not_permitted:phone",)),
        ("", ["app"], None, ("channel_not_permitted:none",)),
        ("app", ["app", "phone"], ["phone"], ("channel_not_permitted:app",)),
        ("phone", ["app", "phone"], ["phone"], ()),
        ("app", None, ["phone"], ("channel_not_permitted:app",)),
    ],
)
def test_an_effect_is_asked_for_through_a_channel_that_is_permitted(
    channel: str, in_catalogue: Any, in_authority: Any, reasons: tuple[str, ...]
) -> None:
    line = json.loads(json.dumps(SCHEDULE))
    if channel:
        line["request"]["channel"] = channel
    if in_authority:
        line["authority"]["channels"] = {"schedule_transfer": in_authority}
    text = PAYMENTS
    if in_catalogue:
        text = text.replace(
            'serves = "schedule"', f'serves = "schedule"\nchannels = {json.dumps(in_catalogue)}'
        )

    found = said(run(line, text))

    assert found[0] == ("deny" if reasons else "accept")
    assert found[2] == reasons


def test_a_provider_that_is_not_idempotent_is_not_sent_to_twice() -> None:
    faults = {"execute": ["timeout_before_commit"]}

    assert said(run({**SCHEDULE, "faults": faults}))[0] == "accept"
    once = run({**SCHEDULE, "faults": {**faults, "idempotent_by_key": False}})

    assert said(once)[0] == "unknown"
    assert len(once.trace.answers) == 1
