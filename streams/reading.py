"""Read topics as any consumer may: committed records only, without a group, up to the end as it was at the start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

# A partition whose leader is away gives nothing for a while; the next poll asks again.
POLL_MS = 1_000


async def read_committed(
    bootstrap: str, topics: Sequence[str]
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    """Each record of the topics, partition by partition in order, from the beginning to the present end.

    Raises aiokafka's errors, and `KeyError` for a topic that the broker does not have.
    """
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False
    ) as consumer:
        await consumer.topics()
        sources = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(consumer.partitions_for_topic(topic) or _missing(topic))
        ]
        consumer.assign(sources)
        ends = await consumer.end_offsets(sources)
        await consumer.seek_to_beginning(*sources)
        for source in sources:
            while await consumer.position(source) < ends[source]:
                polled = await consumer.getmany(source, timeout_ms=POLL_MS)
                for record in polled.get(source, []):
                    yield record


def _missing(topic: str) -> set[int]:
    raise KeyError(f"no topic {topic}")
