"""A worker that hangs where no time limit reaches ends by itself, with what it was at in the log; one that was merely
stopped and woken does not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey
from ticketgate.streams.process.process_watch import EXIT_OVERDUE

from ...support import stuck_worker
from ...support.deployment import Deployment, Worker, ticket
from ...support.policies import SEED_POLICY

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
SETTINGS = {"POLICY": str(SEED_POLICY), "SESSION_TIMEOUT": "3s", "PARTITIONS": "1"}
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def gate(kafka: Kafka, valkey: Valkey, tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(kafka.bootstrap, valkey.url, tmp_path / "deployment", SETTINGS) as gate:
        yield gate


def start_stuck(gate: Deployment, at: str, monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setenv("STUCK_AT", at)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    worker = gate.start_worker(program=stuck_worker.__file__)
    worker.wait_ready()
    return worker


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        ("lock", -signal.SIGABRT, "stuck_worker.py"),
        ("loop", -signal.SIGABRT, "in stuck_claim"),
        ("step", EXIT_OVERDUE, "in stuck_claim"),
    ],
)
def test_a_worker_that_hangs_ends_with_what_it_was_at(
    gate: Deployment, monkeypatch: pytest.MonkeyPatch, at: str, code: int, said: str
) -> None:
    worker = start_stuck(gate, at, monkeypatch)

    gate.send([ticket("T-0", "STUCK")])

    assert worker.process.wait(90) == code, worker.log()
    assert said in worker.log()
    assert gate.committed("dispatch", "review") == []


def test_a_worker_that_was_stopped_for_longer_than_it_may_hang_goes_on(
    gate: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start_stuck(gate, "step", monkeypatch)
    worker.process.send_signal(signal.SIGSTOP)
    time.sleep(stuck_worker.LIMIT_S * 2)

    worker.process.send_signal(signal.SIGCONT)

    worker.wait_for(lambda state: state.get("ready") and state["lanes"])
    time.sleep(stuck_worker.LIMIT_S)
    assert worker.process.poll() is None, worker.log()


def test_the_guard_ends_with_its_worker(gate: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = start_stuck(gate, "", monkeypatch)
    guards = guards_of(worker)
    assert len(guards) == 1

    worker.kill()

    deadline = time.monotonic() + 30
    while any((Path("/proc") / str(guard)).exists() for guard in guards):
        assert time.monotonic() < deadline, guards
        time.sleep(0.05)


def test_a_guard_that_somebody_ended_is_replaced(gate: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = start_stuck(gate, "", monkeypatch)
    (guard,) = guards_of(worker)

    os.kill(guard, signal.SIGKILL)

    worker.wait_for(lambda _: guards_of(worker) not in ([], [guard]))
    assert worker.stop() == 0


def guards_of(worker: Worker) -> list[int]:
    children = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children")
    return [
        int(child)
        for child in children.read_text().split()
        if b"loop_guard" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
