"""A scorer that raises, hangs or gives nonsense: no ticket is lost, and none holds its partition up."""

from __future__ import annotations

import json

import pytest

from ...support import faulty_worker
from ...support.deployment import Deployment, ticket
from ...support.policies import SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    return deploy(policy=str(SEED_POLICY), partitions="1", scorer_timeout="1s", session_timeout="2s")


def verdicts(gate: Deployment, count: int) -> dict[str, tuple[str, list[str]]]:
    records = [
        json.loads(record.value or b"") for record in gate.wait_for_records(count, "dispatch", "review")
    ]
    assert len(records) == count
    return {each["ticket_id"]: (each["verdict"]["stage"], each["verdict"]["reasons"]) for each in records}


def test_a_scorer_that_raises_costs_only_the_ticket_that_it_raises_on(gate: Deployment) -> None:
    worker = gate.start_worker(program=faulty_worker.__file__)
    worker.wait_ready()

    gate.send([ticket("A"), ticket("B", "RAISE"), ticket("C"), ticket("D", "NONSENSE"), ticket("E", "FLAKY")])

    found = verdicts(gate, 5)
    assert {name: stage for name, (stage, _) in found.items()} == {
        "A": "policy",
        "B": "answers",
        "C": "policy",
        "D": "answers",
        "E": "policy",
    }
    assert found["B"][1] == ["the scorer gave no answer: RuntimeError"]
    assert worker.process.poll() is None


def test_a_ticket_that_hangs_the_scorer_ends_two_workers_and_then_goes_to_review(gate: Deployment) -> None:
    gate.send([ticket("A"), ticket("B", "HANG"), ticket("C")])

    exits = []
    for _ in range(2):
        worker = gate.start_worker(program=faulty_worker.__file__)
        exits.append(worker.process.wait(60))
    gate.start_worker(program=faulty_worker.__file__)

    assert exits == [70, 70]
    assert "no answer in 1 s" in gate.workers[0].log()
    found = verdicts(gate, 3)
    assert found["B"] == ("answers", ["the scorer hung on this ticket 2 times"])
    assert {found["A"][0], found["C"][0]} == {"policy"}


def test_what_one_lane_brings_costs_no_other_lane_a_decision(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), partitions="6", scorer_timeout="1s", session_timeout="2s")
    # Those of all lanes wait while the first ones are decided, and go to the scorer together then.
    tickets = [
        ticket(
            f"{number}",
            {7: "RAISE", 30: "HANG", 41: "NONSENSE"}.get(number, "SLOW" if number < 6 else "fine"),
        )
        for number in range(60)
    ]
    gate.send(tickets)

    exits = [gate.start_worker(program=faulty_worker.__file__).process.wait(90) for _ in range(2)]
    gate.start_worker(program=faulty_worker.__file__)

    found = verdicts(gate, 60)
    assert exits == [70, 70]
    assert {name: stage for name, (stage, _) in found.items() if stage != "policy"} == {
        "7": "answers",
        "30": "answers",
        "41": "answers",
    }
    assert found["30"][1] == ["the scorer hung on this ticket 2 times"]
    assert found["7"][1] == ["the scorer gave no answer: RuntimeError"]
