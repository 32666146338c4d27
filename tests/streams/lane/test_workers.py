"""Workers as users run them: processes on a real broker and a real Redis, killed, stopped and joined."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from ...support.deployment import ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

TEXTS = (
    "My card was charged twice. Please fix this today.",
    "How do I change the email address on my account?",
    "The app crashes whenever I open the settings page.",
    "Where do I find my invoice from March?",
)


def ids(records: list) -> Counter[str]:
    return Counter(json.loads(record.value)["ticket_id"] for record in records)


def test_a_worker_killed_in_the_middle_of_its_work_is_finished_for_by_another(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), session_timeout="6s")
    doomed, survivor = gate.start_worker(), gate.start_worker()
    for worker in (doomed, survivor):
        worker.wait_for(lambda state: state.get("ready") and len(state["lanes"]) == 3)
    gate.send(ticket(f"T-{n}", TEXTS[n % len(TEXTS)]) for n in range(2_000))
    gate.wait_for_records(300, "dispatch", "review")

    doomed.kill()

    records = gate.wait_for_records(2_000, "dispatch", "review")
    assert ids(records) == Counter(f"T-{n}" for n in range(2_000))
    assert doomed.metric("ticketgate_records_total") == 0
    assert survivor.wait_ready()["lanes"] == [f"lane {gate.topic('tickets')}:{n}" for n in range(6)]


def test_a_worker_that_is_stopped_drains_and_ends_with_0(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}")
    worker = gate.start_worker()
    worker.wait_ready()
    gate.send(ticket(f"T-{n}") for n in range(200))
    gate.wait_for_records(1, "dispatch", "review")

    assert worker.stop() == 0

    gate.start_worker().wait_ready()
    assert ids(gate.wait_for_records(200, "dispatch", "review")) == Counter(f"T-{n}" for n in range(200))


def test_a_worker_whose_output_is_no_terminal_writes_no_terminal_escapes(deploy: NewDeployment) -> None:
    worker = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}").start_worker()

    worker.wait_ready()

    assert "\x1b" not in worker.log()


def test_workers_beyond_the_partitions_are_idle_and_ready(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="1")
    workers = [gate.start_worker() for _ in range(2)]

    def are_settled(_: object) -> bool:
        states = [worker.ready() for worker in workers]
        is_ready = all(state.get("ready") for state in states)
        return is_ready and sorted(len(state["lanes"]) for state in states) == [0, 1]

    # The first one may have the partition alone for a moment.
    workers[0].wait_for(are_settled)
