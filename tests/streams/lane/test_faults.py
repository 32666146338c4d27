"""Each fault of broker, Redis and worker by itself, on the real thing: readiness tells, nothing is lost or repeated.

Many of them at once, in a random order: tests/chaos.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
SESSION_S = 2
SETTINGS = {
    "policy": str(SEED_POLICY),
    "scorer": f"fixed:{FIXED_ANSWERS}",
    "session_timeout": f"{SESSION_S}s",
    "redis_timeout": "500ms",
    "batch_size": "8",
}


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    return deploy(**SETTINGS)


@pytest.fixture
def own_gate(own_kafka: Kafka, valkey: Valkey, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment on a broker that the test may kill."""
    settings = {name.upper(): value for name, value in SETTINGS.items()}
    with Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "deployment", settings) as gate:
        yield gate


def assert_each_once(gate: Deployment, count: int) -> None:
    records = gate.wait_for_records(count, "dispatch", "review")
    found = Counter(json.loads(record.value or b"")["ticket_id"] for record in records)
    assert found == Counter(f"T-{n}" for n in range(count))


def waits_for(cause: str) -> Callable[[dict[str, Any]], bool]:
    return lambda state: any(cause in reason for reason in state.get("waiting", {}).values())


def test_while_redis_is_away_nothing_is_emitted_and_readiness_says_so(
    gate: Deployment, valkey: Valkey
) -> None:
    worker = gate.start_worker()
    worker.wait_ready()
    valkey.kill()
    gate.send(ticket(f"T-{n}") for n in range(100))

    worker.wait_for(waits_for("redis_away"))

    assert gate.committed("dispatch", "review") == []
    valkey.start()
    assert_each_once(gate, 100)
    worker.wait_ready()


def test_a_redis_that_stands_still_is_waited_for(gate: Deployment, valkey: Valkey) -> None:
    worker = gate.start_worker()
    worker.wait_ready()
    gate.send(ticket(f"T-{n}") for n in range(50))
    gate.wait_for_records(1, "dispatch", "review")
    valkey.pause()
    gate.send(ticket(f"T-{n}") for n in range(50, 100))
    worker.wait_for(waits_for("redis_away"))

    valkey.resume()

    assert_each_once(gate, 100)


def test_a_broker_that_is_killed_and_restarted_is_waited_for(own_gate: Deployment, own_kafka: Kafka) -> None:
    worker = own_gate.start_worker()
    worker.wait_ready()
    own_gate.send(ticket(f"T-{n}") for n in range(300))
    own_gate.wait_for_records(8, "dispatch", "review")
    own_kafka.kill()
    # A lane with nothing to send does not notice that a broker is gone before it polls; one that sends does.
    time.sleep(1)

    own_kafka.start()

    own_gate.send(ticket(f"T-{n}") for n in range(300, 400))
    assert_each_once(own_gate, 400)
    worker.wait_ready()


def test_a_worker_that_was_frozen_and_woken_repeats_nothing(gate: Deployment) -> None:
    zombie, successor = gate.start_worker(), gate.start_worker()
    for worker in (zombie, successor):
        worker.wait_for(lambda state: state.get("ready") and len(state["lanes"]) == 3)
    gate.send(ticket(f"T-{n}") for n in range(400))
    gate.wait_for_records(8, "dispatch", "review")
    zombie.process.send_signal(signal.SIGSTOP)
    successor.wait_for(lambda state: len(state.get("lanes", [])) == 6)
    gate.send(ticket(f"T-{n}") for n in range(400, 500))
    assert_each_once(gate, 500)

    zombie.process.send_signal(signal.SIGCONT)

    zombie.wait_for(lambda state: state.get("ready") and len(state["lanes"]) == 3)
    gate.send(ticket(f"T-{n}") for n in range(500, 600))
    assert_each_once(gate, 600)


def test_a_second_signal_ends_a_worker_at_once(deploy: NewDeployment) -> None:
    from ...support import faulty_worker

    gate = deploy(policy=str(SEED_POLICY), drain_grace="60s", partitions="1")
    worker = gate.start_worker(program=faulty_worker.__file__)
    worker.wait_ready()
    gate.send([ticket("T-0", "HANG")])
    time.sleep(1)
    worker.process.terminate()
    worker.wait_for(waits_for("stopping"))

    worker.process.terminate()

    assert worker.process.wait(5) == 128 + signal.SIGTERM
    assert gate.committed("dispatch", "review") == []
