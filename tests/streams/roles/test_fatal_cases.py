"""A proposal on whose judging the process dies, and an effect on whose sending and reading back it does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from ticketgate.agents.effects.reconcile import MOST_BEGUN
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support import fatal_funnel_worker
from ...support.deployment import Deployment
from ...support.meddling import redis_call
from ...support.payment_funnel import PaymentFunnel, effect_of, said
from ...support.payments import PaymentServer
from ...support.proposals import funnel_file, key_of, proposal
from ...support.supervisor import supervise

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

SIGSEGV = -11


@pytest.fixture
def funnel(kafka: Kafka, valkey: Valkey, bank: PaymentServer, tmp_path: Path) -> Iterator[PaymentFunnel]:
    settings = {
        "PARTITIONS": "1",
        "SESSION_TIMEOUT": "2s",
        "REDIS_TIMEOUT": "1s",
        "FUNNEL": str(funnel_file(tmp_path / "funnel.toml", bank)),
    }
    with Deployment(kafka.bootstrap, valkey.url, tmp_path / "workers", settings) as gate:
        yield PaymentFunnel(gate, bank)


def test_a_proposal_that_ends_the_process_goes_to_review_and_the_others_are_judged(
    funnel: PaymentFunnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FATAL_CASE", "C-2")
    funnel.delegate("user_demo")
    cases = [f"C-{n}" for n in range(5)]
    funnel.send(*(proposal(case_id) for case_id in cases))
    start = partial(funnel.start_worker, "propose", program=fatal_funnel_worker.__file__)

    ends = supervise(
        start, funnel.gate, until=lambda: len(funnel.gate.committed("dispatch", "review")) >= len(cases)
    )

    assert set(ends) == {SIGSEGV}
    assert len(ends) <= 3
    (reviewed,) = funnel.records("review")
    assert reviewed["case_id"] == "C-2"
    assert said(reviewed) == ("review", "policy", ("deciding this record alone ended 2 workers",))
    assert {each["case_id"] for each in funnel.records("dispatch")} == {*cases} - {"C-2"}


def test_an_effect_that_ends_the_process_is_left_to_a_person_and_never_sent_again(
    funnel: PaymentFunnel, monkeypatch: pytest.MonkeyPatch
) -> None:
    fatal = "C-2"
    monkeypatch.setenv("FATAL_KEY", key_of(fatal))
    funnel.delegate("user_demo")
    cases = [f"C-{n}" for n in range(4)]
    judging = funnel.start_worker("propose")
    judging.wait_ready()
    funnel.send(*(proposal(case_id) for case_id in cases))
    funnel.wait_for("dispatch", lambda each: True, count=len(cases))
    start = partial(funnel.start_worker, "effects", program=fatal_funnel_worker.__file__)
    due = ("ZCARD", f"ticketgate:{funnel.gate.name}:effects_open")

    ends = supervise(
        start,
        funnel.gate,
        until=lambda: funnel.lag("effects", "dispatch") == 0 and redis_call(funnel.gate.redis_url, *due) == 0,
    )

    # Twice alone, and before that in the batch or by the reconciler, whose pauses are shortened here.
    assert set(ends) == {SIGSEGV}
    assert len(ends) <= MOST_BEGUN + 3
    for case_id in cases:
        if case_id != fatal:
            assert funnel.effect(case_id)["effect_state"] == "committed"
    told = [each for each in funnel.records("receipts") if effect_of(fatal)(each)]
    assert max(told, key=lambda each: each["sequence"])["effect_state"] == "unknown"
    assert len(funnel.bank.ledger()[key_of(fatal)].transfers) == 1
    assert funnel.bank.account(key_of(fatal)).posts == 1
    held = funnel.gate.run("reconcile", "--json")
    assert key_of(fatal) in held.stdout

    settled = funnel.gate.run(
        "reconcile",
        "--settle",
        key_of(fatal),
        "--as",
        "committed",
        "--by",
        "op@example.org",
        "--reason",
        "seen",
    )
    assert settled.returncode == 0, settled.stderr
    assert funnel.effect(fatal)["effect_state"] == "committed"
