"""A proposal on whose judging the process dies: two workers alone, then a person has it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from ticketgate.streams.embedded.kafka import Kafka
from ticketgate.streams.embedded.valkey import Valkey

from . import fatal_funnel_worker
from .deployment import Deployment
from .payment_funnel import PaymentFunnel, said
from .payments import PaymentServer
from .proposals import funnel_file, proposal
from .supervisor import supervise

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
