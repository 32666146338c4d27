"""A worker is a member of its group or says so: in quiet hours, long outages, refusals that pass, and bad settings.

The client's own limit on idle members is minutes; here it is seconds (impatient_worker.py).
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from redis import Redis
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...conftest import KEEPING
from ...support import impatient_worker, kafka_acls
from ...support.deployment import Deployment, Worker, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

SETTINGS = {
    "policy": str(SEED_POLICY),
    "scorer": f"fixed:{FIXED_ANSWERS}",
    "session_timeout": "2s",
    "redis_timeout": "500ms",
    "batch_size": "8",
}
# Well past the interval after which an impatient client leaves, and a heartbeat beyond.
PAST_THE_INTERVAL_S = impatient_worker.POLL_INTERVAL_S * 2 + 1


@pytest.fixture(autouse=True)
def _programs_find_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


@pytest.fixture
def own_gate(own_kafka: Kafka, valkey: Valkey, tmp_path: Path) -> Iterator[Deployment]:
    """A deployment on a broker that the test may kill."""
    with deployment(own_kafka, valkey, tmp_path) as gate:
        yield gate


def deployment(kafka: Kafka, valkey: Valkey, folder: Path, **settings: str) -> Deployment:
    given = {name.upper(): value for name, value in {**SETTINGS, **settings}.items()}
    return Deployment(kafka.bootstrap, valkey.url, folder / "deployment", given)


def start_impatient(gate: Deployment) -> Worker:
    return gate.start_worker(program=impatient_worker.__file__)


def assert_each_once(gate: Deployment, count: int, *, timeout_s: float = 60) -> None:
    records = gate.wait_for_records(count, "dispatch", "review", timeout_s=timeout_s)
    found = Counter(json.loads(record.value or b"")["ticket_id"] for record in records)
    assert found == Counter(f"T-{n}" for n in range(count))


def says(*words: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a worker is not ready, and one of its reasons has all these words."""
    return lambda state: (
        state.get("ready") is False
        and any(all(word in reason for word in words) for reason in state["waiting"].values())
    )


def test_a_standby_that_was_idle_for_long_takes_over(deploy: NewDeployment) -> None:
    gate = deploy(**SETTINGS, partitions="1")
    workers = [start_impatient(gate), start_impatient(gate)]
    workers[0].wait_for(lambda _: are_settled(workers))
    time.sleep(PAST_THE_INTERVAL_S)
    active, standby = sorted(workers, key=lambda worker: -len(worker.ready()["lanes"]))

    active.stop()
    gate.send([ticket("T-0")])

    assert_each_once(gate, 1, timeout_s=30)
    assert len(standby.wait_ready()["lanes"]) == 1


def test_a_worker_keeps_its_partition_through_batches_that_take_long(deploy: NewDeployment) -> None:
    gate = deploy(**SETTINGS, partitions="1")
    workers = [start_impatient(gate), start_impatient(gate)]
    workers[0].wait_for(lambda _: are_settled(workers))
    active, standby = sorted(workers, key=lambda worker: -len(worker.ready()["lanes"]))
    openings = [each.log().count("opened at offset") for each in (active, standby)]

    gate.send([ticket("T-0", "LONG"), ticket("T-1", "LONG")])

    assert_each_once(gate, 2)
    assert are_settled(workers)
    assert [each.log().count("opened at offset") for each in (active, standby)] == openings


def are_settled(workers: list[Worker]) -> bool:
    states = [worker.ready() for worker in workers]
    return all(state.get("ready") for state in states) and sorted(len(each["lanes"]) for each in states) == [
        0,
        1,
    ]


def test_lanes_open_again_however_long_redis_was_away(deploy: NewDeployment, valkey: Valkey) -> None:
    gate = deploy(**SETTINGS)
    worker = start_impatient(gate)
    worker.wait_ready()
    valkey.kill()
    gate.send(ticket(f"T-{n}") for n in range(200))
    worker.wait_for(says("redis_away"))
    time.sleep(PAST_THE_INTERVAL_S)
    worker.wait_for(says("redis_away"))

    valkey.start()

    assert_each_once(gate, 200)
    assert len(worker.wait_ready()["lanes"]) == 6


def test_lanes_open_again_however_long_the_broker_was_away(own_gate: Deployment, own_kafka: Kafka) -> None:
    worker = start_impatient(own_gate)
    worker.wait_ready()
    own_gate.send(ticket(f"T-{n}") for n in range(2_000))
    own_gate.wait_for_records(8, "dispatch", "review")
    own_kafka.kill()
    time.sleep(PAST_THE_INTERVAL_S)
    worker.wait_for(says("no broker answers", "TICKETGATE_KAFKA"))

    own_kafka.start()

    assert_each_once(own_gate, 2_000)
    assert len(worker.wait_ready()["lanes"]) == 6


def test_a_worker_refuses_until_lost_claims_are_rebuilt_however_long_that_takes(
    deploy: NewDeployment, valkey: Valkey
) -> None:
    gate = deploy(**SETTINGS)
    gate.start_worker().wait_ready()
    gate.send(ticket(f"T-{n}") for n in range(60))
    assert_each_once(gate, 60)
    gate.workers[0].stop()
    Redis.from_url(valkey.url).flushall()
    worker = start_impatient(gate)
    gate.send(ticket(f"T-{n}") for n in range(60, 120))
    worker.wait_for(says("claims_lost", "claims rebuild"))
    time.sleep(PAST_THE_INTERVAL_S)
    state = worker.ready()
    assert says("claims_lost", "claims rebuild")(state), state

    done = gate.run("claims", "rebuild")

    assert done.returncode == 0, done.stderr
    assert_each_once(gate, 120)
    assert len(worker.wait_ready()["lanes"]) == 6


def test_a_worker_that_may_not_read_its_group_says_so_and_comes_back_by_itself(
    valkey: Valkey, tmp_path: Path
) -> None:
    with (
        Kafka(data=tmp_path / "kafka", properties=KEEPING | kafka_acls.PROPERTIES) as kafka,
        deployment(kafka, valkey, tmp_path) as gate,
    ):
        member = gate.start_worker()
        member.wait_ready()
        kafka_acls.deny_read(kafka.bootstrap, gate.name)
        newcomer = gate.start_worker()
        for worker in (member, newcomer):
            worker.wait_for(says("not_authorized", gate.name, "Read"))

        kafka_acls.allow_read(kafka.bootstrap, gate.name)

        for worker in (member, newcomer):
            worker.wait_for(lambda state: state.get("ready") and len(state["lanes"]) == 3)
        gate.send(ticket(f"T-{n}") for n in range(50))
        assert_each_once(gate, 50)


async def test_a_group_with_another_assignor_is_told_of_and_joined_once_that_is_gone(
    deploy: NewDeployment,
) -> None:
    gate = deploy(**SETTINGS)
    async with foreigner_in(gate):
        worker = gate.start_worker()
        await asyncio.to_thread(worker.wait_for, says("assignor", "TICKETGATE_GROUP", gate.name))

    await asyncio.to_thread(worker.wait_ready)


@asynccontextmanager
async def foreigner_in(gate: Deployment) -> AsyncIterator[None]:
    """A client of somebody else in the workers' group."""
    consumer = AIOKafkaConsumer(
        gate.topic("tickets"),
        bootstrap_servers=gate.bootstrap,
        group_id=gate.name,
        enable_auto_commit=False,
        partition_assignment_strategy=(StickyPartitionAssignor,),
    )
    async with consumer:
        while not consumer.assignment():  # noqa: ASYNC110 - aiokafka tells nobody
            await asyncio.sleep(0.1)
        yield


def test_a_session_timeout_that_the_broker_refuses_is_named_and_tried_again(
    own_kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    own_kafka.stop()
    allowed = own_kafka._properties["group.min.session.timeout.ms"]
    own_kafka._properties["group.min.session.timeout.ms"] = "6000"
    own_kafka.start()
    with deployment(own_kafka, valkey, tmp_path) as gate:
        worker = gate.start_worker()
        worker.wait_for(says("TICKETGATE_SESSION_TIMEOUT", "group.min.session.timeout.ms"))
        own_kafka.stop()
        own_kafka._properties["group.min.session.timeout.ms"] = allowed

        own_kafka.start()

        worker.wait_ready()


def test_a_dead_broker_is_told_of_by_idle_workers_with_and_without_a_partition(
    own_kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    with deployment(own_kafka, valkey, tmp_path, partitions="1") as gate:
        workers = [gate.start_worker(), gate.start_worker()]
        workers[0].wait_for(lambda _: are_settled(workers))

        own_kafka.kill()

        for worker in workers:
            worker.wait_for(says("no broker answers", "TICKETGATE_KAFKA"))
            assert worker.get("/readyz")[0] == 503
        own_kafka.start()
        workers[0].wait_for(lambda _: are_settled(workers))


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_a_redis_that_does_not_answer_is_told_of_by_idle_workers_with_and_without_a_partition(
    deploy: NewDeployment, valkey: Valkey, fault: str
) -> None:
    # Nobody looks at the conditions meanwhile: it is the answer of another server that has them looked at.
    gate = deploy(**SETTINGS, partitions="1", condition_interval="3m")
    workers = [gate.start_worker(), gate.start_worker()]
    workers[0].wait_for(lambda _: are_settled(workers))

    valkey.kill() if fault == "kill" else valkey.pause()

    for worker in workers:
        worker.wait_for(says("redis_away", "TICKETGATE_REDIS"))
    valkey.start() if fault == "kill" else valkey.resume()
    workers[0].wait_for(lambda _: are_settled(workers))


def test_a_worker_that_was_frozen_is_not_ready_before_its_group_knows_it_again(deploy: NewDeployment) -> None:
    gate = deploy(**SETTINGS, partitions="1")
    worker = gate.start_worker()
    worker.wait_ready()
    worker.process.send_signal(signal.SIGSTOP)
    successor = gate.start_worker()
    successor.wait_for(lambda state: state.get("ready") and len(state["lanes"]) == 1)

    worker.process.send_signal(signal.SIGCONT)

    worker.wait_for(lambda _: are_settled([worker, successor]))
    gate.send(ticket(f"T-{n}") for n in range(20))
    assert_each_once(gate, 20)
