"""One input partition's records in order: by aiokafka, and where that cannot read, by salvage.

Promise: no record is left out; `UnreadableBatch` names what cannot be read, and only this partition's lane is told.
Relies on: asking for one partition alone, so that what aiokafka raises for another stays with that one's lane.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from ticketgate.streams.salvage import is_about_bytes, salvage

log = logging.getLogger(__name__)

# How long one poll waits for records: it bounds how late a lane sees that it shall drain.
POLL_MS = 200


class PartitionReader:
    """Reads one partition of a consumer, at most `most` records at a time."""

    def __init__(self, consumer: AIOKafkaConsumer, source: TopicPartition, *, most: int) -> None:
        self._consumer = consumer
        self._source = source
        self._most = most
        # What one salvage brought and nobody has taken yet; the consumer's position is behind it.
        self._salvaged: deque[ConsumerRecord] = deque()

    def seek(self, offset: int) -> None:
        """Go on at `offset`."""
        self._salvaged.clear()
        self._consumer.seek(self._source, offset)

    async def poll(self, offset: int) -> Sequence[ConsumerRecord]:
        """The next records, none if there are none for a moment. `offset` is where the caller stands.

        Raises aiokafka's errors, and `UnreadableBatch` as often as it is asked for one.
        """
        if not self._salvaged:
            try:
                polled = await self._consumer.getmany(
                    self._source, timeout_ms=POLL_MS, max_records=self._most
                )
            except Exception as err:
                if not is_about_bytes(err):
                    raise
                await self._salvage(offset, err)
            else:
                records: Sequence[ConsumerRecord] = polled.get(self._source, [])
                return records
        return [self._salvaged.popleft() for _ in range(min(self._most, len(self._salvaged)))]

    async def _salvage(self, offset: int, err: Exception) -> None:
        source = self._source
        salvaged = await salvage(self._consumer, source, offset)
        self._salvaged.extend(salvaged.records)
        # Also lets aiokafka forget what it holds of this partition and cannot unpack.
        self._consumer.seek(source, salvaged.next_offset)
        log.warning(
            "%s:%d: aiokafka cannot read on at offset %d (%r); %d records up to %d were salvaged",
            source.topic,
            source.partition,
            offset,
            err,
            len(salvaged.records),
            salvaged.next_offset - 1,
        )
