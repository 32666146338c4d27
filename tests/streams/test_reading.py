"""Reading topics from their beginning, on a real broker."""

from __future__ import annotations

from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewTopic
from ticketgate.streams.broker import admin_client
from ticketgate.streams.embedded.kafka import Kafka
from ticketgate.streams.kafka_connection import connection_of
from ticketgate.streams.reading import read_committed
from ticketgate.streams.settings import load_settings

RECORDS = 12
# A reader that raced with aiokafka's own look-up of a position stood at the end in one of six readings.
READINGS = 60


@pytest.mark.kafka
async def test_each_reading_begins_at_the_beginning(kafka: Kafka) -> None:
    topics = [f"{name}-{uuid4().hex[:8]}" for name in ("full", "empty")]
    connection = connection_of(load_settings({"kafka": kafka.bootstrap}, environment={}).settings)
    async with admin_client(connection) as client:
        await client.create_topics(
            [NewTopic(name=each, num_partitions=6, replication_factor=1) for each in topics]
        )
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        for n in range(RECORDS):
            await producer.send_and_wait(topics[0], b"%d" % n, partition=n % 6)

    counts = [len([record async for record in read_committed(connection, topics)]) for _ in range(READINGS)]

    assert counts == [RECORDS] * READINGS
