"""One committed record by where it lies, again and again, for lanes of a process that ask one after the other.

Promise: None is said only of an offset outside the log, or of one that holds no committed record; a broker that does
not answer raises.
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.internals import client_of
from ticketgate.streams.kafka.reading.scanning import close
from ticketgate.streams.kafka.reading.topic_reading import told_end

# What is there comes in milliseconds, from a broker that restarts in seconds; then the lane begins anew.
FETCH_TIMEOUT_S = 20.0
# A broker sends at least one batch, however little is asked for: what lies behind the record is of no use.
FETCH_BYTES = 65_536
_POLL_MS = 200


class RecordAt:
    """A consumer without a group, started when first asked."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._consumer: AIOKafkaConsumer | None = None
        self._turn = asyncio.Lock()
        self._known: set[TopicPartition] = set()

    async def fetch(self, at: Coordinate) -> ConsumerRecord | None:
        """The record at a coordinate, or None. Raises aiokafka's errors and TimeoutError; then the next call starts
        anew."""
        async with self._turn:
            try:
                async with asyncio.timeout(FETCH_TIMEOUT_S):
                    return await self._fetch(await self._started(), at)
            except BaseException:
                await self._drop()
                raise

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._turn:
            await self._drop()

    async def _started(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            self._consumer = AIOKafkaConsumer(
                **self._connection.arguments(),
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                isolation_level="read_committed",
                fetch_max_wait_ms=100,
                max_partition_fetch_bytes=FETCH_BYTES,
            )
            await self._consumer.start()
            # A consumer stopped before its task first ran raises that task's CancelledError (aiokafka 0.14).
            await asyncio.sleep(0)
        return self._consumer

    async def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await close(consumer)

    async def _fetch(self, consumer: AIOKafkaConsumer, at: Coordinate) -> ConsumerRecord | None:
        source = TopicPartition(at.topic, at.partition)
        if source not in self._known:
            cluster = await client_of(consumer).fetch_all_metadata()
            if at.partition not in (cluster.partitions_for_topic(at.topic) or ()):
                return None
            self._known.add(source)
        first = (await consumer.beginning_offsets([source]))[source]
        end = (await consumer.end_offsets([source]))[source]
        if at.offset >= end:
            consumer.assign([source])
            consumer.seek(source, end)
            # Fetches tell: Tansu's answer to a plain question for the end counts the last batch as one record.
            end = max(end, await told_end(consumer, source))
        if not first <= at.offset < end:
            return None
        consumer.assign([source])
        consumer.seek(source, at.offset)
        while True:
            polled = await consumer.getmany(source, timeout_ms=_POLL_MS, max_records=1)
            for record in polled.get(source, []):
                return record if record.offset == at.offset else None
            # Markers and what was aborted take offsets too: only the position tells that there is no record.
            if await consumer.position(source) > at.offset:
                return None
