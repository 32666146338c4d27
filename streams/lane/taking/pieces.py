"""A partition taken in pieces: each read, taken and committed before the next, of the size that fits (pace.py), and
narrowed where it will not pass (narrowing.py). Where a worker died, records are taken one by one (careful.py).

Promise: a piece is the next records in order, and none is left out; what is raised came before anything was committed,
or leaves unknown whether it was. The size outlives a reopening, and so does what is known of a record that fails.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiokafka import ConsumerRecord
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.lane.opening.opening import Start
from ticketgate.streams.lane.taking.batch import Alone, BatchHung, BatchTaker
from ticketgate.streams.lane.taking.careful import CarefulTaker
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.narrowing import Narrowing, cause_of
from ticketgate.streams.lane.taking.pace import Pace
from ticketgate.streams.lane.taking.partition import PartitionReader
from ticketgate.streams.lane.transaction import Output

# A broker that loses a partition's end does so while it restarts or changes, and gives nothing to read meanwhile: so
# what is read without a pause needs no second look.
IDLE_S = 1.0


class Pieces:
    """One lane's. `name`: the partition's, for messages; `clock` in seconds; `verify` raises if the topic no longer
    has the record that was taken last."""

    def __init__(
        self,
        name: str,
        *,
        reader: PartitionReader,
        careful: CarefulTaker,
        floor: Floor,
        taker: BatchTaker,
        pace: Pace,
        verify: Callable[[Witness], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._careful = careful
        self._floor = floor
        self._taker = taker
        self._pace = pace
        self._verify = verify
        self._clock = clock
        self._narrowing = Narrowing(name)
        self._began_at = 0
        self._failed_at: int | None = None
        # The last record taken since the lane opened, and when.
        self._last: Witness | None = None
        self._ended = clock()

    def reopened(self) -> None:
        """The lane has opened anew, and knows by itself what was read last."""
        self._last = None

    @property
    def is_narrowing(self) -> bool:
        """Whether each try tells more of what will not pass, so that the next need not wait long."""
        return self._narrowing.is_under_way

    def is_held_at(self, offset: int) -> bool:
        """Whether the piece that begins there failed when it was last tried."""
        return self._failed_at == offset

    async def take_next(self, offset: int, start: Start, output: Output) -> int | None:
        """Take the next piece, which begins at `offset` or behind; returns where the next begins, None where there is
        nothing to take. Raises what reading and taking raise, and `WillNotPass`."""
        self._began_at = offset
        if self._careful.is_on:
            if not self._narrowing.has_suspect:
                return await self._careful.take_next(offset, start.token, output, take=self._take)
            # It is judged by its neighbour, in one piece with it.
            self._careful.stand_back()
        records = await self._reader.poll(offset, most=self._narrowing.most(self._pace.size))
        if not records:
            return None
        last = self._last or start.last
        if last is not None and self._clock() - self._ended > IDLE_S:
            await self._verify(last)
        async with self._floor.beside():
            return await self._take(records, start.token, output)

    async def _take(
        self,
        records: Sequence[ConsumerRecord],
        token: LaneToken,
        output: Output,
        alone: Alone | None = None,
    ) -> int:
        began = self._clock()
        aside = self._narrowing.aside(records)
        try:
            next_offset = await self._taker.take(
                records, token=token, output=output, aside=aside, alone=alone
            )
        except BatchHung:
            raise
        except Exception as err:
            self._failed_at = self._began_at
            self._narrow(records, aside, err)
            raise
        self._failed_at = None
        self._last, self._ended = Witness.of(records[-1]), self._clock()
        self._pace = self._pace.passed(len(records), self._clock() - began)
        self._narrowing.passed(records, aside)
        return next_offset

    def _narrow(self, records: Sequence[ConsumerRecord], aside: Mapping[int, str], err: Exception) -> None:
        cause = cause_of(err)
        if cause is None:
            return
        self._pace = self._pace.failed(len(records))
        if found := self._narrowing.failed(records, aside, cause, err):
            raise found from err
