"""What the delivery protocol rests on, proven on a real Apache Kafka with a bare lane (spike_lane.py)."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from . import spike_lane

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
TICKETS = 12
SINK = TopicPartition(spike_lane.SINK, 0)


class Lane:
    """A spike lane in a process of its own, which can be stopped, resumed and killed."""

    def __init__(self, broker: Kafka, valkey: Valkey, hold_at: str = "") -> None:
        command = [sys.executable, spike_lane.__file__, broker.bootstrap, str(valkey.port), hold_at]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read_until(self, *steps: str) -> str:
        """The first line that begins with one of `steps`, or with `failed` or `end`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.split()[0] in {*steps, "failed", "end"}:
                return line.strip()
        raise AssertionError("the lane ended without a word")

    def resume(self) -> None:
        assert self.process.stdin is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


async def fill(broker: Kafka) -> None:
    """Fresh topics with TICKETS records, the last of them a repetition of the first."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics(
            [NewTopic(name, 1, 1) for name in (spike_lane.SOURCE.topic, spike_lane.SINK)]
        )
    finally:
        await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for n in [*range(TICKETS - 1), 0]:
            await producer.send_and_wait(spike_lane.SOURCE.topic, b"v", key=b"k%d" % n, partition=0)


async def visible(broker: Kafka) -> list[str]:
    """The keys that a read_committed reader sees in the output."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap, isolation_level="read_committed", enable_auto_commit=False
    )
    async with consumer:
        consumer.assign([SINK])
        await consumer.seek_to_beginning(SINK)
        end = (await consumer.end_offsets([SINK]))[SINK]
        keys: list[str] = []
        while await consumer.position(SINK) < end:
            records = (await consumer.getmany(SINK, timeout_ms=1_000)).get(SINK, [])
            keys += [(record.key or b"").decode() for record in records]
        return keys


@pytest.fixture
def broker(own_kafka: Kafka) -> Kafka:
    asyncio.run(fill(own_kafka))
    return own_kafka


def assert_each_key_once(broker: Kafka) -> None:
    assert Counter(asyncio.run(visible(broker))) == Counter(f"k{n}" for n in range(TICKETS - 1))


def test_a_stopped_lane_that_wakes_after_its_successor_fenced_it_gets_nothing_in(
    broker: Kafka, valkey: Valkey
) -> None:
    zombies = []
    for step in ("fenced", "read", "claimed", "sent", "offsets"):
        zombie = Lane(broker, valkey, hold_at=step)
        zombie.read_until(step)
        zombie.process.send_signal(signal.SIGSTOP)
        zombies.append(zombie)
    successor = Lane(broker, valkey)

    assert successor.read_until() == "end"
    for zombie in zombies:
        zombie.resume()
    last_words = [zombie.read_until() for zombie in zombies]

    # The first zombie had not read its position yet; it finds the partition finished and has nothing to send.
    assert last_words[0] == "end"
    assert all(words.startswith("failed") for words in last_words[1:]), last_words
    assert_each_key_once(broker)
    for lane in (*zombies, successor):
        lane.close()


def test_a_killed_lane_leaves_no_half_a_batch(broker: Kafka, valkey: Valkey) -> None:
    for step in ("claimed", "sent", "offsets", "committed"):
        lane = Lane(broker, valkey, hold_at=step)
        lane.read_until(step)
        lane.close()
    successor = Lane(broker, valkey)

    assert successor.read_until() == "end"

    assert_each_key_once(broker)
    successor.close()


@dataclass(frozen=True)
class Race:
    """A commit against a fence: the offset read before fencing, at once after it, and later; what readers see."""

    before: int
    at_once: int
    later: int
    is_visible: bool


async def race_a_commit(broker: Kafka, offset: int, delay_s: float) -> Race:
    """Fence a lane and, `delay_s` seconds into the fencing, let it commit."""
    source, group = spike_lane.SOURCE, spike_lane.GROUP
    zombie = spike_lane.fenced_producer(broker.bootstrap)
    successor = spike_lane.fenced_producer(broker.bootstrap)
    await zombie.start()
    await zombie.begin_transaction()
    await zombie.send_and_wait(SINK.topic, b"v", key=b"o%d" % offset, partition=0)
    await zombie.send_offsets_to_transaction({source: offset + 1}, group)
    async with spike_lane.group_consumer(broker.bootstrap) as consumer:
        consumer.assign([source])
        before = await consumer.committed(source) or 0
        fence = asyncio.create_task(successor.start())
        await asyncio.sleep(delay_s)
        commit = asyncio.create_task(zombie.commit_transaction())
        await fence
        at_once = await consumer.committed(source) or 0
        await asyncio.gather(commit, return_exceptions=True)
        await asyncio.sleep(0.02)
        later = await consumer.committed(source) or 0
    is_visible = f"o{offset}" in await visible(broker)
    await asyncio.gather(zombie.stop(), successor.stop(), return_exceptions=True)
    return Race(before, at_once, later, is_visible)


def test_an_offset_read_after_fencing_is_never_stale(broker: Kafka) -> None:
    rng = random.Random(20261129)
    offset, outcomes = 0, Counter[str]()
    for _ in range(60):
        race = asyncio.run(race_a_commit(broker, offset, rng.uniform(0, 0.012)))

        assert race.at_once == race.later == (offset + 1 if race.is_visible else offset)

        outcomes["commit won" if race.is_visible else "fence won"] += 1
        outcomes["stale if read before the fence"] += race.before != race.later
        offset = race.later
    print(dict(outcomes))
