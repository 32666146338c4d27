"""One input partition's records in order: by aiokafka, and where that cannot read, by salvage.

Promise: no record is left out; `UnreadableBatch` names what cannot be read, and only this partition's lane is told.
With care (careful.py) it is read batch by batch instead: `fetch`, look at `next_batch`, `unpack` it, `next_record`;
`resume` goes back to polling.
Relies on: asking for one partition alone, so that what aiokafka raises for another stays with that one's lane.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import MutableMapping, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.reading.salvage import Fetched, UnreadableBatch, fetch, is_about_bytes, salvage

log = logging.getLogger(__name__)

# How long one poll waits for records: it bounds how late a lane sees that it shall drain.
POLL_MS = 200


class PositionMoved(LaneFault):
    """The consumer's position is not where this reader left it. What it gave is not taken; the lane seeks again."""

    def __init__(self, *, expected: int, found: int | None) -> None:
        super().__init__(
            f"expected to read on at offset {expected}, not {found}",
            Handling(Action.REOPEN, "position_moved"),
        )


class PartitionReader:
    """Reads one partition of a consumer.

    `positions` is shared by all readers of the consumer and tells where the last of them left each partition. A lane
    that outlives its assignment for a moment reads from the same consumer as its successor: without it, either could
    take records that the other then passes over.
    """

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        source: TopicPartition,
        *,
        positions: MutableMapping[TopicPartition, int],
    ) -> None:
        self._consumer = consumer
        self._source = source
        self._positions = positions
        self._next_offset = 0
        # What one salvage brought and nobody has taken yet; the consumer's position is behind it.
        self._salvaged: deque[ConsumerRecord] = deque()
        # What was fetched and not unpacked yet.
        self._fetched = Fetched(source, 0)

    def seek(self, offset: int) -> None:
        """Go on at `offset`."""
        self._salvaged.clear()
        self._fetched = Fetched(self._source, offset)
        self._consumer.seek(self._source, offset)
        self._moved_to(offset)

    async def poll(self, offset: int, *, most: int) -> Sequence[ConsumerRecord]:
        """The next records, at most `most`, none if there are none for a moment. `offset` is where the caller stands.

        Raises `PositionMoved`, aiokafka's errors, and `UnreadableBatch` as often as it is asked for one.
        """
        if not self._salvaged:
            try:
                polled = await self._consumer.getmany(self._source, timeout_ms=POLL_MS, max_records=most)
            except Exception as err:
                if not is_about_bytes(err):
                    raise
                await self._salvage(offset, err)
            else:
                records: Sequence[ConsumerRecord] = polled.get(self._source, [])
                self._accept(records)
                return records
        return [self._salvaged.popleft() for _ in range(min(most, len(self._salvaged)))]

    @property
    def next_offset(self) -> int:
        """Where what is not unpacked yet begins."""
        return self._next_offset

    @property
    def has_unpacked(self) -> bool:
        """Whether records are unpacked that nobody took."""
        return bool(self._salvaged)

    async def fetch(self) -> None:
        """Fetch what comes next, if there is nothing left of what was fetched before. It is not unpacked.

        Raises `PositionMoved` and aiokafka's errors.
        """
        if not self._fetched.has_next():
            self._fetched = await fetch(self._consumer, self._source, self._next_offset)
            self._accept(())

    def next_batch(self, reason: str) -> UnreadableBatch | None:
        """The batch that `unpack` would unpack, as one that is given up for `reason`; None if nothing was fetched."""
        return self._fetched.next_as_unreadable(reason) if self._fetched.has_next() else None

    def unpack(self) -> None:
        """Unpack the next batch of what was fetched. Raises `PositionMoved` and `UnreadableBatch`."""
        self._accept(())
        self._salvaged.extend(self._fetched.unpack_next())
        self._moved_to(self._fetched.next_offset)

    def next_record(self) -> ConsumerRecord | None:
        """The next record that was unpacked."""
        return self._salvaged.popleft() if self._salvaged else None

    def resume(self) -> None:
        """Go on by `poll`, behind what was unpacked."""
        self._fetched = Fetched(self._source, self._next_offset)
        self._consumer.seek(self._source, self._next_offset)
        self._consumer.resume(self._source)

    def _accept(self, records: Sequence[ConsumerRecord]) -> None:
        """Nothing may be awaited between the consumer's answer and this."""
        if (found := self._positions.get(self._source)) != self._next_offset:
            raise PositionMoved(expected=self._next_offset, found=found)
        if records:
            if records[0].offset < self._next_offset:
                raise PositionMoved(expected=self._next_offset, found=records[0].offset)
            self._moved_to(records[-1].offset + 1)

    def _moved_to(self, offset: int) -> None:
        self._next_offset = self._positions[self._source] = offset

    async def _salvage(self, offset: int, err: Exception) -> None:
        source = self._source
        salvaged = await salvage(self._consumer, source, offset)
        self._accept(())
        self._salvaged.extend(salvaged.records)
        # Also lets aiokafka forget what it holds of this partition and cannot unpack.
        self._consumer.seek(source, salvaged.next_offset)
        self._moved_to(salvaged.next_offset)
        log.warning(
            "%s:%d: aiokafka cannot read on at offset %d (%r); %d records up to %d were salvaged",
            source.topic,
            source.partition,
            offset,
            err,
            len(salvaged.records),
            salvaged.next_offset - 1,
        )
