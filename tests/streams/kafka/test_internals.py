"""The private names of aiokafka that we stand on are there, in the version that is installed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from ticketgate.streams.kafka import internals as client_internals
from ticketgate.streams.kafka.internals import (
    client_of,
    coordinator_of,
    heartbeat_of,
    placing,
    sender_task,
    told_versions,
)
from ticketgate.streams.parts.kafka import Kafka

ROOT = Path(__file__).resolve().parents[3]
# Whose private names may be read, and where: aiokafka's, Faust's and aiohttp's, each in a room of its own.
ROOMS = {"internals", "app", "connections"}
# Public, for all their underscore: a field may have any other name.
OF_NAMEDTUPLES = {"_replace", "_asdict", "_fields", "_make"}


@pytest.mark.kafka
async def test_a_member_of_a_group_asks_its_coordinator(kafka: Kafka) -> None:
    async with AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, group_id="internals") as consumer:
        coordinator = coordinator_of(consumer)

        await coordinator.ensure_coordinator_known()

        assert coordinator.coordinator_id is not None
        # It has not joined, and is told so.
        assert not await heartbeat_of(coordinator)()
        assert await coordinator.fetch_committed_offsets([]) == {}


@pytest.mark.kafka
async def test_a_consumers_client_knows_its_cluster_and_sends(kafka: Kafka) -> None:
    async with AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap) as consumer:
        client = client_of(consumer)

        assert await client.force_metadata_update()
        assert client.cluster.brokers()
        assert callable(client.send)


@pytest.mark.kafka
async def test_a_broker_tells_its_versions(kafka: Kafka) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.describe_cluster()
        told = told_versions(admin)
    finally:
        await admin.close()

    (versions,) = told
    assert all(least <= most for least, most in versions.values())


@pytest.mark.kafka
async def test_a_producer_has_a_task_that_sends(kafka: Kafka) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        task = sender_task(producer)

        assert task is not None
        assert not task.done()


@pytest.mark.kafka
async def test_a_producer_tells_where_it_would_put_a_record(kafka: Kafka) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic("placing", 5, 1)])
    finally:
        await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        await producer.partitions_for("placing")
        place = placing(producer, "placing")

        keys = [b"", b"T-1", "größe".encode(), *(b"%d" % n for n in range(20))]
        found = [(await producer.send_and_wait("placing", b"v", key=key)).partition for key in keys]

        assert [place(key) for key in keys] == found
        assert len(set(found)) == 5
        assert {place(None) for _ in range(200)} == set(range(5))


def private_names(code: str) -> list[str]:
    """Private attributes that are read of anything but a class of the same file."""
    return [
        f"{ast.unparse(node)} at line {node.lineno}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and node.attr not in OF_NAMEDTUPLES
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", "os"})
        and f"def {node.attr}(self" not in code
        and f"self.{node.attr} = " not in code
        and f"self.{node.attr}: " not in code
    ]


def test_private_names_of_others_are_read_in_their_rooms_alone() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for folder in ("streams", "agents", "store", "codecs")
        for path in (ROOT / folder).rglob("*.py")
        if path.stem not in ROOMS and (names := private_names(path.read_text()))
    }

    assert not found, f"put each behind a function of {client_internals.__name__}"


def test_a_private_name_is_seen() -> None:
    assert private_names("x = consumer._client.cluster") == ["consumer._client at line 1"]
    assert not private_names("self._client = cls._made\nos._exit(1)\nx.__name__")
