"""The records that the funnel's page shows are records, and its incident becomes a case."""

from __future__ import annotations

import asyncio
import json

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.workbench.funnel.cases import read_cases, run_cases
from ticketgate.agents.workbench.funnel.export import export_cases
from ticketgate.codecs import CaseDecision, EffectReceipt, read_case_decision, read_receipt
from ticketgate.codecs.records.case_decision import CaseDecisionDocument
from ticketgate.codecs.records.effect_receipt import EffectReceiptDocument

from ....support.funnel import PAYMENTS
from ...funnel.test_page import PAGE, blocks


def test_the_shown_records_are_read_and_hold_every_field() -> None:
    decision, receipt = (json.loads(each) for each in blocks("json", "Records"))

    assert isinstance(read_case_decision(decision), CaseDecision)
    assert isinstance(read_receipt(receipt), EffectReceipt)
    assert decision.keys() == CaseDecisionDocument.__annotations__.keys()
    # It stands only where the gates stopped an effect at their second look, and this one was sent.
    assert receipt.keys() | {"judged_again"} == EffectReceiptDocument.__annotations__.keys()


def test_the_shown_decision_becomes_a_case_with_its_verdict() -> None:
    decision = read_case_decision(json.loads(blocks("json", "Records")[0]))
    assert isinstance(decision, CaseDecision)

    lines, errors = export_cases([decision], [])

    cases = read_cases("\n".join(map(json.dumps, lines)), source="page")
    (result,) = asyncio.run(run_cases(cases, catalogue=PAYMENTS, provider=MemoryProvider()))
    assert (errors, result.unmet) == ([], ())
    assert result.outcome.verdict == decision.verdict


def test_every_fault_that_the_page_names_is_one() -> None:
    section = PAGE.partition("## From an incident to a case\n")[2].partition("\n## ")[0]

    for name in ("timeout_after_commit", "timeout_before_commit", "unreadable", "altered", "refused"):
        assert f"`{name}`" in section
