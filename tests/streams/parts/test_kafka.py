"""Apache Kafka without Docker: it serves transactions, keeps its records, and goes when told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from ticketgate.streams.parts.kafka import Kafka, KafkaCluster

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka() as running:
        yield running


async def create(bootstrap: str, topic: str, *, replicas: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=replicas)])
    finally:
        await admin.close()


async def commit(bootstrap: str, topic: str, value: bytes, *, transactional_id: str = "lane") -> None:
    """One record in one transaction."""
    async with (
        AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id) as producer,
        producer.transaction(),
    ):
        await producer.send_and_wait(topic, value)


async def committed(bootstrap: str, topic: str, *, count: int) -> list[bytes]:
    """The first `count` values as a read_committed consumer sees them."""
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        return [(await consumer.getone()).value or b"" for _ in range(count)]


async def test_a_transaction_reaches_a_read_committed_consumer(kafka: Kafka) -> None:
    await create(kafka.bootstrap, "served")

    await commit(kafka.bootstrap, "served", b"ticket")

    assert await committed(kafka.bootstrap, "served", count=1) == [b"ticket"]


async def test_a_group_member_is_served_without_the_first_rebalance_delay(kafka: Kafka) -> None:
    await create(kafka.bootstrap, "grouped")
    await commit(kafka.bootstrap, "grouped", b"ticket")

    async with AIOKafkaConsumer(
        "grouped", bootstrap_servers=kafka.bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        record = await consumer.getone()

    assert record.value == b"ticket"


async def test_records_survive_kill_9_and_an_orderly_stop_on_the_same_port(kafka: Kafka) -> None:
    await create(kafka.bootstrap, "kept")
    bootstrap = kafka.bootstrap
    await commit(bootstrap, "kept", b"before the kill")

    kafka.kill()
    kafka.start()
    await commit(bootstrap, "kept", b"before the stop")
    kafka.stop()
    kafka.start()

    assert kafka.bootstrap == bootstrap
    assert await committed(bootstrap, "kept", count=2) == [b"before the kill", b"before the stop"]


async def test_a_paused_broker_serves_again_when_resumed(kafka: Kafka) -> None:
    await create(kafka.bootstrap, "paused")

    kafka.pause()
    kafka.resume()
    await commit(kafka.bootstrap, "paused", b"ticket")

    assert await committed(kafka.bootstrap, "paused", count=1) == [b"ticket"]


async def test_data_given_again_come_up_on_other_ports(tmp_path: Path) -> None:
    with Kafka(data=tmp_path) as first:
        await create(first.bootstrap, "moved")
        await commit(first.bootstrap, "moved", b"ticket")

    with Kafka(data=tmp_path) as second:
        assert second.bootstrap != first.bootstrap
        assert await committed(second.bootstrap, "moved", count=1) == [b"ticket"]


async def test_topics_are_not_made_by_accident(kafka: Kafka) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.describe_topics(["never-created"])

        assert "never-created" not in await admin.list_topics()
    finally:
        await admin.close()


def test_temporary_data_go_with_the_broker(kafka: Kafka) -> None:
    # Another broker, so that the shared one lives on.
    with Kafka() as own:
        folder = own.log_file.parent
        assert folder.is_dir()

    assert not folder.exists()
    assert kafka.is_running


async def test_a_cluster_of_three_commits_while_one_broker_is_killed() -> None:
    with KafkaCluster() as cluster:
        await create(cluster.bootstrap, "replicated", replicas=3)
        await commit(cluster.bootstrap, "replicated", b"three")

        cluster.nodes[1].kill()
        alive = f"{cluster.nodes[0].bootstrap},{cluster.nodes[2].bootstrap}"
        await commit(alive, "replicated", b"two", transactional_id="other")
        cluster.nodes[1].start()

        assert await committed(cluster.bootstrap, "replicated", count=2) == [b"three", b"two"]
