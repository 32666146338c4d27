"""Records of every version that a worker reads, and workers of two versions one after the other."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ticketgate.codecs.values.strict import JsonValue

from ...support.deployment import Deployment, Sent, Worker, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

RECORDED = Path(__file__).parents[2] / "codecs/recorded"
NEXT_VERSION = Path(__file__).parent / "next_version"
PARTITIONS = "4"


def recorded_tickets() -> list[dict[str, JsonValue]]:
    return [
        json.loads(line)
        for path in sorted(RECORDED.glob("ticket-*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def test_a_worker_reads_the_recorded_tickets_of_every_version(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", dispatch_with_ticket="true")
    tickets = recorded_tickets()
    gate.start_worker().wait_ready()

    gate.send(Sent(json.dumps(each).encode()) for each in tickets)

    records = gate.wait_for_records(len(tickets), "dispatch", "review")
    assert gate.committed("dead-letter") == []
    read = {json.loads(each.value or b"")["ticket_id"]: json.loads(each.value or b"") for each in records}
    for each in tickets:
        assert read[str(each["id"])]["ticket"] == {
            name: value for name, value in each.items() if name != "schema" and value not in ("", {})
        }


def old(gate: Deployment) -> Worker:
    """A worker of the present version."""
    return gate.start_worker()


def new(gate: Deployment, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker that reads `ticket/2` too."""
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(NEXT_VERSION))
        return gate.start_worker()


class Producing:
    """Sends tickets of version 1 without pause, until stopped; their ids."""

    def __init__(self, gate: Deployment) -> None:
        self._gate = gate
        self._is_over = threading.Event()
        self.ids: list[str] = []

    def run(self) -> None:
        while not self._is_over.is_set():
            more = [f"v1-{len(self.ids) + n}" for n in range(20)]
            # With and without the version's name, which is not needed.
            schemas: list[dict[str, object]] = [{}, {"schema": "ticket/1"}]
            self._gate.send(ticket(each, **schemas[n % 2]) for n, each in enumerate(more))
            self.ids += more
            self._is_over.wait(0.1)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()


def version_2(name: str, count: int) -> list[Sent]:
    return [ticket(f"{name}-{n}", schema="ticket/2", channel="mail") for n in range(count)]


def wait_for_lanes(worker: Worker, count: int) -> None:
    worker.wait_for(lambda state: state.get("ready") is True and len(state["lanes"]) == count)


def test_a_rolling_upgrade_and_the_way_back_lose_and_repeat_nothing(
    deploy: NewDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = deploy(
        policy=str(SEED_POLICY),
        scorer=f"fixed:{FIXED_ANSWERS}",
        partitions=PARTITIONS,
        session_timeout="6s",
    )
    producing = Producing(gate)
    first = old(gate)
    wait_for_lanes(first, 4)
    with producing.running():
        gate.wait_for_records(50, "dispatch", "review")
        # Workers first: the new one joins, the old one leaves; then the producers.
        second = new(gate, monkeypatch)
        wait_for_lanes(second, 2)
        assert first.stop() == 0
        wait_for_lanes(second, 4)
        gate.send(version_2("v2", 30))
        gate.wait_for_records(1, "dispatch", "review")
        # And back, this time by a kill in the middle of its work.
        third = old(gate)
        wait_for_lanes(third, 2)
        second.kill()
        wait_for_lanes(third, 4)
    # A producer that was not set back first.
    gate.send(version_2("late", 5))
    gate.send(ticket(each) for each in producing.ids[:40])

    # What the old worker cannot read waits in dead-letter for the next upgrade.
    third.wait_for(lambda _: gate.lag() == 0)
    dead = [json.loads(each.value or b"")["id"] for each in gate.committed("dead-letter")]
    reasons = {dict(each.headers)["ticketgate-error-code"] for each in gate.committed("dead-letter")}
    assert {f"late-{n}" for n in range(5)} <= set(dead)
    assert reasons == {b"unknown_schema"}
    fourth = new(gate, monkeypatch)
    assert third.stop() == 0
    wait_for_lanes(fourth, 4)
    monkeypatch.setenv("PYTHONPATH", str(NEXT_VERSION))
    replayed = gate.run("dead-letter", "replay", "--code", "unknown_schema", "--yes")
    assert replayed.returncode == 0, replayed.stderr
    expected = [*producing.ids, *(f"v2-{n}" for n in range(30)), *(f"late-{n}" for n in range(5))]
    records = gate.wait_for_records(len(expected), "dispatch", "review")

    assert Counter(json.loads(each.value or b"")["ticket_id"] for each in records) == Counter(expected)
    fourth.wait_for(lambda _: gate.lag() == 0)
    assert len(gate.committed("dispatch", "review")) == len(expected)
