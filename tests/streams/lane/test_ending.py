"""A worker that is told to end does so within its grace and a little, whatever it waits for at that moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.process import Part
from ticketgate.streams.parts.valkey import Valkey

from ...conftest import KEEPING
from ...support import faulty_worker, kafka_acls
from ...support.deployment import Deployment, Worker, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

SETTINGS = {
    "POLICY": str(SEED_POLICY),
    "SCORER": f"fixed:{FIXED_ANSWERS}",
    "SESSION_TIMEOUT": "2s",
    "REDIS_TIMEOUT": "500ms",
    "DRAIN_GRACE": "2s",
    "PARTITIONS": "1",
}
# The grace and the bound beyond it are 12 s; the rest is for a busy machine. What held an end up took minutes.
WAIT_S = 40
# In that time a client that tries again without pause writes about 1,500 lines.
OUTAGE_S = 20
MOST_LINES = 60


@pytest.fixture
def gate(kafka: Kafka, valkey: Valkey, tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(kafka.bootstrap, valkey.url, tmp_path / "deployment", SETTINGS) as gate:
        yield gate


def waits(state: dict[str, Any]) -> bool:
    return state.get("ready") is False


def test_a_worker_whose_scorer_hangs_ends(gate: Deployment) -> None:
    worker = gate.start_worker(program=faulty_worker.__file__, SCORER_TIMEOUT="10m")
    worker.wait_ready()
    gate.send([ticket("T-0", "HANG")])
    worker.wait_for(lambda _: "HANG under way" in worker.log())

    assert worker.stop(WAIT_S) == 0

    assert gate.committed("dispatch", "review") == []


FAULTS: dict[str, Callable[[Part], None]] = {"dead": Part.kill, "frozen": Part.pause}


@pytest.mark.parametrize("load", [0, 200], ids=["idle", "at work"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_worker_whose_redis_is_away_ends(
    gate: Deployment, valkey: Valkey, fault: Callable[[Part], None], load: int
) -> None:
    worker = gate.start_worker()
    worker.wait_ready()
    fault(valkey)
    gate.send(ticket(f"T-{n}") for n in range(load))
    worker.wait_for(waits)

    assert worker.stop(WAIT_S) == 0


@pytest.mark.parametrize("load", [pytest.param(0, id="idle"), pytest.param(2_000, id="at work")])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_worker_whose_broker_is_away_ends(
    own_kafka: Kafka, valkey: Valkey, tmp_path: Path, fault: Callable[[Part], None], load: int
) -> None:
    with Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "deployment", SETTINGS) as gate:
        worker = gate.start_worker()
        worker.wait_ready()
        gate.send(ticket(f"T-{n}") for n in range(load))
        fault(own_kafka)
        worker.wait_for(waits)

        assert worker.stop(WAIT_S) == 0


def test_a_worker_that_its_group_does_not_let_in_ends(valkey: Valkey, tmp_path: Path) -> None:
    with (
        Kafka(data=tmp_path / "kafka", properties=KEEPING | kafka_acls.PROPERTIES) as kafka,
        Deployment(kafka.bootstrap, valkey.url, tmp_path / "deployment", SETTINGS) as gate,
    ):
        kafka_acls.deny_read(kafka.bootstrap, gate.name)
        worker: Worker = gate.start_worker()
        worker.wait_for(waits)

        assert worker.stop(WAIT_S) == 0


def test_an_outage_of_the_broker_is_told_of_in_few_lines(
    own_kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    with Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "deployment", SETTINGS) as gate:
        worker = gate.start_worker()
        worker.wait_ready()
        own_kafka.kill()
        worker.wait_for(waits)
        time.sleep(OUTAGE_S)

        own_kafka.start()

        worker.wait_ready()
        lines = worker.log().splitlines()
        assert len(lines) <= MOST_LINES, worker.log()
