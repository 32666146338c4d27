"""The embedded broker serves a group without Java, and keeps nothing."""

from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from ticketgate.streams.parts.tansu import Tansu


@pytest.fixture
def tansu() -> Iterator[Tansu]:
    with Tansu() as running:
        yield running


async def create(tansu: Tansu, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=tansu.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    finally:
        await admin.close()


async def test_a_group_member_gets_what_was_produced(tansu: Tansu) -> None:
    await create(tansu, "served")
    async with AIOKafkaProducer(bootstrap_servers=tansu.bootstrap) as producer:
        await producer.send_and_wait("served", b"ticket")

    async with AIOKafkaConsumer(
        "served", bootstrap_servers=tansu.bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        record = await consumer.getone()

    assert record.value == b"ticket"


async def test_a_restart_forgets_all(tansu: Tansu) -> None:
    await create(tansu, "forgotten")

    tansu.stop()
    tansu.start()

    admin = AIOKafkaAdminClient(bootstrap_servers=tansu.bootstrap)
    await admin.start()
    try:
        assert "forgotten" not in await admin.list_topics()
    finally:
        await admin.close()


def test_its_folder_goes_with_it() -> None:
    with Tansu() as own:
        folder = own.log_file.parent
        pid = own.pid
        assert folder.is_dir()
        assert pid > 0

    assert not folder.exists()
    assert not own.is_running
