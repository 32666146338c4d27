"""A dead letter is kept for its full retention, whatever time its record claimed, and the time is not forgotten."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...conftest import require_or_skip
from ...support.deployment import Deployment, Sent
from ...support.meddling import set_topic_config
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.raw_batches import batch, send_batches

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

NO_TIME, IN_1970, IN_2100 = -1, 1_000, 4_102_444_800_000
TRUNCATED = Sent(b'{"id": "T-1", ', key=b"T-1")


@pytest.fixture
def tidy_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """A broker that takes away each second what retention gives up."""
    tidy = {"log.initial.task.delay.ms": "1000", "log.retention.check.interval.ms": "1000"}
    try:
        broker = Kafka(data=tmp_path / "kafka", properties=tidy)
    except PartMissing as err:
        require_or_skip(err)
    with broker:
        yield broker


def first_offset(gate: Deployment, topic: str) -> int:
    async def ask() -> int:
        source = TopicPartition(gate.topic(topic), 0)
        async with AIOKafkaConsumer(bootstrap_servers=gate.bootstrap) as consumer:
            return int((await consumer.beginning_offsets([source]))[source])

    return asyncio.run(ask())


def send(gate: Deployment, topic: str, times_ms: Sequence[int]) -> None:
    """A record for each time, in a batch of its own."""
    batches = [(0, batch([TRUNCATED], timestamp_ms=each)) for each in times_ms]
    send_batches(gate.bootstrap, gate.topic(topic), batches)


def wait_until_gone(gate: Deployment, topic: str, offset: int) -> None:
    deadline = time.monotonic() + 90
    while first_offset(gate, topic) <= offset:
        assert time.monotonic() < deadline, f"retention does not take {topic}:0:{offset}"
        time.sleep(0.2)


def test_retention_does_not_take_a_dead_letter_for_the_time_that_its_record_claimed(
    tidy_kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    began_ms = time.time_ns() // 1_000_000
    ago_ms = began_ms - 40 * 86_400_000
    settings = {"POLICY": str(SEED_POLICY), "SCORER": f"fixed:{FIXED_ANSWERS}", "PARTITIONS": "1"}
    settings = {
        "POLICY": str(SEED_POLICY),
        "SCORER": f"fixed:{FIXED_ANSWERS}",
        "PARTITIONS": "1",
        # Exactly once it would refuse a topic that keeps its records for ever.
        "GUARANTEE": "at_least_once",
    }
    claimed = (ago_ms, IN_1970, NO_TIME, IN_2100)
    with Deployment(tidy_kafka.bootstrap, valkey.url, tmp_path / "gate", settings) as gate:
        set_topic_config(gate, "tickets", retention_ms="-1", message_timestamp_after_max_ms=str(2**62))
        send(gate, "tickets", claimed)
        gate.start_worker()
        gate.wait_for_records(len(claimed), "dead-letter")

        # After the second of these, retention has looked at every topic.
        for control in range(2):
            send(gate, "repairs", [IN_1970])
            wait_until_gone(gate, "repairs", control)

        dead = gate.committed("dead-letter")
        now_ms = time.time_ns() // 1_000_000
        assert all(began_ms <= each.timestamp <= now_ms for each in dead)
        said = [int(dict(each.headers)["ticketgate-original-timestamp"]) for each in dead]
        assert said == list(claimed)
        # What is said of them goes by the time that they claimed.
        listed = gate.run("dead-letter", "list").stdout
        assert "1970-01-01T00:00:01.000Z" in listed
        assert "2100-01-01T00:00:00.000Z" in listed
        found = gate.run("dead-letter", "list", "--json", "--until", "1971-01-01T00:00:00Z").stdout
        assert len(found.splitlines()) == 1
        # None of these times is fit to be sent again; the original of an hour ago is in test_dead_letter_replay.py.
        done = gate.run("dead-letter", "replay", "--unmended", "--yes", "--json")
        assert json.loads(done.stdout)["sent"] == len(claimed)
