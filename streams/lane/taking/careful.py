"""How a lane takes what was under way when a worker before it died: with care, batch by batch and record by record.

    U  UNPACK   each batch is written down before it is unpacked, with this process doing nothing else
    D  DECODE   each record is written down before it is decoded, alone; then it is claimed and written down once more
    E  DECIDE   alone; what was decided is written down before it is committed (batch.py)

Promise: what ends the process ends it again at most twice in each of U, D and E: after that a record that can be read
goes to review, one that cannot to dead-letter, and its neighbours are decided. A batch of several records that cannot
be unpacked is refused as unreadable, for a person to give up; one of a single record is given up like that record.
A kill from outside makes the next lane careful for the records under way, and blames none.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from aiokafka import ConsumerRecord, TopicPartition
from ticketgate.agents.plural import counted
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.verdict import Stage
from ticketgate.store.lane_state.underway import Doing, UnderWay, UnderWays
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.reading.salvage import UnreadableBatch
from ticketgate.streams.lane.opening.care import FATAL_TO_UNPACK, Care
from ticketgate.streams.lane.taking.batch import Alone
from ticketgate.streams.lane.taking.dead_letters import ENDS_WORKER
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.intake import Unreadable
from ticketgate.streams.lane.taking.partition import PartitionReader
from ticketgate.streams.lane.taking.passing import PassingOver
from ticketgate.streams.lane.transaction import Output

log = logging.getLogger(__name__)


TakeAlone = Callable[[Sequence[ConsumerRecord], LaneToken, Output, Alone], Awaitable[int]]
"""Takes one record as a piece of its own (pieces.py)."""


class CarefulTaker:
    """The care of one lane. `begin` at each opening; then, as long as `is_on`, `take_next`."""

    def __init__(
        self,
        source: TopicPartition,
        *,
        reader: PartitionReader,
        passing: PassingOver,
        under_ways: UnderWays,
        floor: Floor,
        telemetry: Telemetry,
    ) -> None:
        self._source = source
        self._reader = reader
        self._passing = passing
        self._under_ways = under_ways
        self._floor = floor
        self._telemetry = telemetry
        self._care = Care(0)
        self._token: LaneToken | None = None

    @property
    def is_on(self) -> bool:
        """Whether the next record is taken with care."""
        return bool(self._care.left)

    def says(self, offset: int) -> str:
        """What /readyz tells of a lane that stands at an offset; empty when it is not careful."""
        if not self.is_on:
            return ""
        left = max(0, self._care.stop - offset)
        return f"takes {counted(left, 'offset')} one by one, to {self._care.stop - 1}: a worker ended there"

    async def begin(self, token: LaneToken, care: Care, offset: int) -> None:
        """Take what is in `care` with care, from an offset on. Raises `Superseded` and redis-py's errors."""
        self._token, self._care = token, care
        for each in care.left:
            if each.is_new:
                under_way = each.under_way
                self._telemetry.worker_death(self._source.topic, under_way.doing)
                log.warning(
                    "%s:%d: a worker ended while %s offsets %d to %d%s",
                    self._source.topic,
                    self._source.partition,
                    under_way.doing,
                    under_way.offsets.start,
                    under_way.offsets.stop - 1,
                    ", with nothing else under way" if under_way.is_alone else "",
                )
        await self._end_where_past(offset)

    def end(self) -> None:
        """The lane is not at work."""
        self._care = Care(0)
        self._telemetry.careful(self._source.topic, self._source.partition, 0)

    async def take_next(
        self, offset: int, token: LaneToken, output: Output, *, take: TakeAlone
    ) -> int | None:
        """Take one record alone by `take`, if there is one; returns where the next begins, None where nothing was
        taken. `offset` is where the lane stands. Raises what reading and `take` raise."""
        next_offset = await self._take_next(token, output, take)
        await self._end_where_past(offset if next_offset is None else next_offset)
        return next_offset

    def stand_back(self) -> None:
        """Let `poll` read for a piece or two."""
        self._reader.resume()

    async def _take_next(self, token: LaneToken, output: Output, take: TakeAlone) -> int | None:
        if not self._reader.has_unpacked:
            await self._reader.fetch()
            if (batch := self._reader.next_batch(FATAL_TO_UNPACK)) is not None:
                async with self._floor.alone():
                    await self._unpack(batch, token)
        record = self._reader.next_record()
        return None if record is None else await self._take(record, token, output, take)

    async def _unpack(self, batch: UnreadableBatch, token: LaneToken) -> None:
        if self._care.deaths(Doing.UNPACKING, batch.offsets.start):
            raise batch
        await self._under_ways.note(token, UnderWay(Doing.UNPACKING, batch.offsets, is_alone=True))
        self._reader.unpack()
        await self._under_ways.note(token, UnderWay(Doing.READING, batch.offsets))

    async def _take(self, record: ConsumerRecord, token: LaneToken, output: Output, take: TakeAlone) -> int:
        place: int = record.offset
        offsets = range(place, place + 1)
        if deaths := self._care.deaths(Doing.DECODING, place):
            return await self._passing.give_up(_unreadable(record, deaths), token=token, output=output)

        async def on_decided() -> None:
            await self._under_ways.note(token, UnderWay(Doing.COMMITTING, offsets, is_alone=True))

        objection = self._care.objection(place)
        async with self._floor.alone():
            await self._under_ways.note(token, UnderWay(Doing.DECODING, offsets, is_alone=True))
            next_offset = await take([record], token, output, Alone(objection, on_decided))
        if objection:
            self._telemetry.fatal_record(self._source.topic, "review")
            log.error("%s:%d:%d was given up: %s", *self._source, place, objection)
        return next_offset

    async def _end_where_past(self, offset: int) -> None:
        """Care is over where the lane is past it, or what it stands before."""
        at = max(offset, 0 if self._reader.has_unpacked else self._reader.next_offset)
        self._telemetry.careful(self._source.topic, self._source.partition, max(0, self._care.stop - at))
        if not self.is_on or at < self._care.stop or self._token is None:
            return
        await self._under_ways.forget(self._token, [each.token for each in self._care.left])
        self._care = Care(at)
        self._reader.resume()


def _unreadable(record: ConsumerRecord, deaths: int) -> Unreadable:
    """A record that nobody decoded, as it came."""
    reason = f"decoding this record alone ended {counted(deaths, 'worker')}"
    headers: Sequence[tuple[str, bytes | None]] = record.headers
    return Unreadable(
        coordinate=Coordinate(record.topic, record.partition, record.offset),
        key=record.key,
        value=record.value or b"",
        headers=tuple(headers),
        timestamp_ms=record.timestamp,
        malformed=Malformed(Stage.PARSE, ENDS_WORKER, reason),
    )
