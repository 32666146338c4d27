"""Topics that were made anew, lost their end or got more partitions, while workers rest and while they run."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.cutting import cut_end
from ...support.deployment import Deployment, Worker, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

NewGate = Callable[..., Deployment]


@pytest.fixture
def deploy(own_kafka: Kafka, valkey: Valkey, tmp_path: Path) -> Iterator[NewGate]:
    """Makes deployments of one partition on a broker of their own."""
    with ExitStack() as stack:

        def new(**settings: str) -> Deployment:
            given = {
                "POLICY": str(SEED_POLICY),
                "SCORER": f"fixed:{FIXED_ANSWERS}",
                "PARTITIONS": "1",
                "SESSION_TIMEOUT": "3s",
                **settings,
            }
            return stack.enter_context(Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "gate", given))

        yield new


def admin(gate: Deployment, what: str, *arguments: object) -> None:
    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=gate.bootstrap)
        await client.start()
        try:
            await getattr(client, what)(*arguments)
        finally:
            await client.close()

    asyncio.run(act())


def send_one_by_one(gate: Deployment, names: list[str]) -> None:
    """Each in a batch of its own, so that a file can be cut behind any."""

    async def act() -> None:
        async with AIOKafkaProducer(bootstrap_servers=gate.bootstrap, acks="all") as producer:
            for name in names:
                sent = ticket(name)
                await producer.send_and_wait(gate.topic("tickets"), sent.value, key=sent.key)

    asyncio.run(act())


def named(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{n}" for n in range(count)]


def decided(gate: Deployment, count: int) -> Counter[str]:
    records = gate.wait_for_records(count, "dispatch", "review")
    return Counter(json.loads(each.value or b"")["ticket_id"] for each in records)


def refusal(worker: Worker, cause: str) -> str:
    return json.dumps(worker.wait_for(lambda state: cause in json.dumps(state), timeout_s=150))


def make_anew(gate: Deployment) -> None:
    admin(gate, "delete_topics", [gate.topic("tickets")])
    gate.create_topics()


class TestTopicMadeAnew:
    def test_it_is_refused_and_no_replay_passes_over_anything(self, deploy: NewGate) -> None:
        gate = deploy()
        gate.send(ticket(each) for each in named("old", 243))
        worker = gate.start_worker()
        decided(gate, 243)
        worker.stop()
        make_anew(gate)
        new = named("new", 300)
        gate.send(ticket(each) for each in new)

        worker = gate.start_worker()

        seen = refusal(worker, "topic_made_anew")
        assert "TICKETGATE_NAMESPACE" in seen
        worker.stop()
        for place in ("marks", "cut", "beginning"):
            done = gate.run("replay", "--replay-from", place, "--yes")
            assert (done.returncode, "made anew" in done.stderr) == (2, True), (place, done.stderr)
        # What the line says helps.
        other = {"NAMESPACE": f"{gate.name}-2", "GROUP": f"{gate.name}-2"}
        gate.start_worker(**other)
        assert decided(gate, 543) == Counter([*named("old", 243), *new])

    def test_a_running_worker_finds_it(self, deploy: NewGate) -> None:
        gate = deploy()
        gate.send(ticket(each) for each in named("old", 20))
        worker = gate.start_worker()
        decided(gate, 20)
        worker.wait_ready()

        make_anew(gate)
        gate.send(ticket(each) for each in named("new", 40))

        refusal(worker, "topic_made_anew")


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("is_running", [False, True])
def test_a_topic_that_lost_its_end_is_refused_and_the_remedy_decides_what_is_new(
    deploy: NewGate, own_kafka: Kafka, tmp_path: Path, *, guarantee: str, is_running: bool
) -> None:
    gate = deploy(GUARANTEE=guarantee)
    old, new = named("old", 10), named("new", 12)
    send_one_by_one(gate, old)
    worker = gate.start_worker()
    decided(gate, 10)
    worker.wait_for(lambda _: gate.lag() == 0)
    if not is_running:
        worker.stop()

    own_kafka.kill()
    cut_end(tmp_path / "kafka", gate.topic("tickets"), 0, first=6)
    own_kafka.start()
    send_one_by_one(gate, new)
    if not is_running:
        worker = gate.start_worker()

    seen = refusal(worker, "input_truncated")
    assert f"{gate.topic('tickets')}:0:9" in seen
    worker.stop()
    done = gate.run("replay", "--replay-from", "marks", "--yes")
    assert done.returncode == 2
    assert "--replay-from cut" in done.stderr
    done = gate.run("replay", "--replay-from", "cut", "--yes")
    assert done.returncode == 0, done.stderr
    gate.start_worker()
    assert decided(gate, 22) == Counter([*old, *new])


def test_partitions_that_were_added_are_served_and_compared(deploy: NewGate) -> None:
    gate = deploy()
    worker = gate.start_worker()
    worker.wait_ready()

    admin(gate, "create_partitions", {gate.topic("tickets"): NewPartitions(3)})

    worker.wait_for(lambda state: len(state["lanes"]) == 3, timeout_s=180)
    names = named("T", 60)
    gate.send(ticket(each) for each in names)
    assert decided(gate, 60) == Counter(names)
    worker.wait_for(lambda _: gate.lag() == 0)
