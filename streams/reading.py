"""Read topics as any consumer may: committed records only, without a group, up to the end as it was at the start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from ticketgate.streams.broker import admin_client
from ticketgate.streams.kafka_connection import KafkaConnection

# A partition whose leader is away gives nothing for a while; the next poll asks again.
POLL_MS = 1_000


async def read_committed(
    connection: KafkaConnection, topics: Sequence[str]
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    """Each record of the topics, which exist, partition by partition in order, from the beginning to the present end.

    Raises `Unreachable`, `SettingsError`, and aiokafka's errors.
    """
    async with admin_client(connection) as client:
        described = await client.describe_topics(list(topics))
    sources = [
        TopicPartition(topic["topic"], partition["partition"])
        for topic in described
        for partition in sorted(topic["partitions"], key=lambda each: each["partition"])
    ]
    async with AIOKafkaConsumer(
        **connection.arguments(),
        isolation_level="read_committed",
        enable_auto_commit=False,
        # Not seek_to_beginning: aiokafka looks up the default position as soon as it is assigned, and takes that answer
        # for the seek's. With `latest` the reader then stood at the end, and read nothing, now and again.
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign(sources)
        ends = await consumer.end_offsets(sources)
        for source in sources:
            while await consumer.position(source) < ends[source]:
                polled = await consumer.getmany(source, timeout_ms=POLL_MS)
                for record in polled.get(source, []):
                    yield record
