"""The demo's example bank, asked as a worker asks a provider; and what its demo makes of the example's cases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.effects.adapters.http import HttpPort
from ticketgate.agents.effects.port import (
    Collision,
    Command,
    Executed,
    ExecuteResult,
    Found,
    NotFound,
    Prepared,
    TimedOut,
)
from ticketgate.agents.funnel.file.funnel_file import load_funnel_file
from ticketgate.agents.funnel.file.release import check_release
from ticketgate.agents.workbench.funnel.cases import Expectation
from ticketgate.codecs.records.pieces import CatalogueRef
from ticketgate.codecs.records.receipt import RepairReceipt
from ticketgate.codecs.values.times import rfc3339
from ticketgate.codecs.verdict import Stage, Status
from ticketgate.streams.demo.funnel_cases import mended, script_of, seed_cases, write_funnel_file
from ticketgate.streams.demo.funnel_demo import FunnelDemoResult, unmet_by
from ticketgate.streams.demo.funnel_seen import Outcome
from ticketgate.streams.parts.bank import Script
from ticketgate.streams.parts.bank_process import BankProcess, Book

KEY, SILENT = "a-key-of-mine", "a-silent-key"
# For an answer that comes, on a busy machine; and for one that never does.
LONG_S, SHORT_S = 20.0, 0.5
NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)


@pytest.fixture
def bank() -> Iterator[BankProcess]:
    with BankProcess(Script(unanswered=(SILENT,))) as bank:
        yield bank


@asynccontextmanager
async def port_to(bank: BankProcess, timeout_s: float = LONG_S) -> AsyncIterator[HttpPort]:
    port = HttpPort(
        url=f"{bank.url}/transfers",
        read_back_url=f"{bank.url}/transfers/by-key/{{key}}",
        is_idempotent_by_key=True,
        settle_s=0.0,
        timeout_s=timeout_s,
    )
    try:
        yield port
    finally:
        await port.close()


async def pay(port: HttpPort, key: str = KEY, amount: str = "6.00") -> ExecuteResult:
    prepared = await port.prepare(Command("schedule_transfer", {"amount_gbp": amount}, key))
    assert isinstance(prepared, Prepared)
    return await port.execute(prepared)


async def test_one_key_has_one_transfer_whatever_comes_twice(bank: BankProcess) -> None:
    state = {"amount_gbp": "6.00", "status": "scheduled"}

    async with port_to(bank) as port:
        answers = [await pay(port), await pay(port), await pay(port, amount="7.00")]
        found = [await port.read_back(KEY), await port.read_back("another-key")]

    assert answers == [
        Executed("tr_0001", state, is_replay=False),
        Executed("tr_0001", state, is_replay=True),
        Collision(),
    ]
    assert found == [Found("tr_0001", state), NotFound()]
    assert bank.book() == Book({KEY: ("tr_0001",)}, requests=3, read_backs=2)


async def test_what_is_committed_without_an_answer_can_be_read_back(bank: BankProcess) -> None:
    async with port_to(bank, SHORT_S) as port:
        answer = await pay(port, SILENT)
    async with port_to(bank) as port:
        found = await port.read_back(SILENT)

    assert answer == TimedOut()
    assert isinstance(found, Found)
    assert found.provider_id == "tr_0001"


async def test_a_bank_that_was_told_to_pays_twice() -> None:
    with BankProcess(Script(pays_twice=True)) as bank:
        async with port_to(bank) as port:
            await pay(port)

        assert bank.book().transfers == {KEY: ("tr_0001", "tr_0002")}


def test_each_case_has_evidence_of_its_own_confirmed_just_now() -> None:
    cases = seed_cases(NOW)

    script = script_of(cases)

    assert len(cases) == len(script.authority) == len(script.world) == 7
    assert script.unanswered == ("exactly-once-demo",)
    for case in cases:
        evidence = script.authority[case.proposal.request.actor_id]
        confirmed = [each["confirmed_at"] for each in evidence["confirmations"]]
        assert set(confirmed) <= {rfc3339(NOW - timedelta(minutes=2))}


def test_a_mended_case_changes_what_may_change_and_nothing_else() -> None:
    case = next(each for each in seed_cases(NOW) if each.proposal.case_id == "semantic_amount_drift")
    repair = RepairReceipt(
        stage=Stage.SEMANTICS,
        codes=("amount_gbp:proposal=660.00:request=600.00",),
        source_of_truth="request",
        permitted=("amount_gbp",),
        anchors={"amount_gbp": "600.00", "payee_id": "supplier_8"},
        before={},
        after={},
        catalogue=CatalogueRef("payments", "1", "0" * 64),
        attempt=1,
        maximum=1,
        remaining=0,
    )

    again = mended(case, repair)

    assert again.attempt == ("semantic_amount_drift", 2)
    assert again.proposal.call == case.proposal.call.replace("660.00", "600.00")
    assert again.proposal.request == case.proposal.request


def test_the_demos_funnel_file_is_the_examples_and_may_be_automatic(tmp_path: Path) -> None:
    file = load_funnel_file(write_funnel_file(tmp_path, "http://127.0.0.1:1"))

    assert file.is_automatic("schedule_transfer")
    assert check_release(file) == ()
    assert "127.0.0.1:8000" not in file.path.read_text()


def test_what_is_not_told_or_not_as_expected_is_unmet() -> None:
    expect = Expectation(status=Status.ACCEPT, stage=Stage.OUTCOME, committed=0)

    unmet = list(unmet_by(expect, Outcome(attempt=("a", 1), decisions=2), committed=1))

    assert unmet == [
        "not accounted for",
        "decided 2 times",
        "status: expected accept, got None",
        "stage: expected outcome, got None",
        "committed: expected 0, got 1",
    ]


@pytest.mark.parametrize(
    ("transfers", "faults"),
    [
        ({}, ()),
        ({"k": ("tr_0001",)}, ()),
        ({"k": ("tr_0001", "tr_0002")}, ("2 transfers under the key k",)),
    ],
)
def test_a_key_with_more_than_one_transfer_is_a_fault(transfers: Any, faults: tuple[str, ...]) -> None:
    result = FunnelDemoResult((), Book(transfers, 0, 0), "exactly_once", "Kafka", 1.0)

    assert (result.bank_faults, result.is_as_expected) == (faults, not faults)
