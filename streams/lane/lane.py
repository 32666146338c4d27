"""A lane: all that serves one assigned input partition, and the delivery protocol in the order of its steps.

    0 ASSIGN   the partition is paused before its lane starts (assignment.py)
    1 FENCE    take the partition's token in Redis, then start the output's producer: the broker keeps a zombie from
               committing, the token keeps it from writing to Redis what its successor has read past
    2 READ     the committed offsets, after fencing, against the marks in Redis; seek; resume
    3 DECODE   a piece of records (pieces.py) to tickets; malformed ones ride the same transaction to dead-letter
    4 CLAIM    the keys, in one round trip, and last of all the mark that says how far
    5 DECIDE   what is owned, before the transaction opens: an open one holds up every read_committed reader
    6 COMMIT   records and the offset one past the batch, together; then mark it in Redis
    7 REOPEN   after anything else: drop the producer, back off, go to 1

What is under way is written down with 2, 4 and 6, and taken back when the lane ends: where a worker died instead, the
next lane takes what it left alone, record by record (careful.py).

Promise: a crash between any two steps never emits twice and never loses; while Redis or the broker is away the lane
waits, and readiness says for which. There is no pending state: what a lane finds at step 2 is all that it knows.
Relies on: the fence, proven in tests/streams/lane/test_spike.py, and claims that are durable. The token, the marks of
all
partitions and the mark of a commit at once are there for what tests/streams/lane/model found. See
ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractContextManager
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition
from redis.exceptions import RedisError
from ticketgate.store.lane_state.underway import Doing, UnderWay, UnderWays
from ticketgate.store.tokens import LaneToken, Superseded
from ticketgate.streams.config.overdue import Steps
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.faults import Action, LaneFault
from ticketgate.streams.kafka.reading.salvage import UnreadableBatch
from ticketgate.streams.lane.membership import NotAMember
from ticketgate.streams.lane.opening.opening import Opening, Start
from ticketgate.streams.lane.recovery import handling
from ticketgate.streams.lane.taking.batch import BatchHung, BatchTaker
from ticketgate.streams.lane.taking.careful import CarefulTaker
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.pace import Pace
from ticketgate.streams.lane.taking.partition import PartitionReader
from ticketgate.streams.lane.taking.passing import PassingOver
from ticketgate.streams.lane.taking.pieces import Pieces
from ticketgate.streams.lane.transaction import Output

log = logging.getLogger(__name__)

# The first wait after a failure and the longest: a broker that restarts needs seconds, and lanes that try without
# pause would keep it from coming up.
BACK_OFF_FIRST_S = 0.2
BACK_OFF_MOST_S = 5.0
# Redis may be what ails, and a lane must end all the same: the group waits for it, and a hung process must go.
NOTE_TIMEOUT_S = 2.0
# A step that takes longer hangs, and ends the process (overdue.py): each limit is longer than all that bounds what is
# done in the step. What a taker waits for has limits of its own, the scorer's among them (app.py); the lane's is for
# what none of them reaches.
STEP_LIMIT_S = 300.0
TAKE_LIMIT_S = 3600.0
# How often a refused lane looks whether a person mended what it refused for.
REFUSAL_RETRY_S = 10.0


class Lane:
    """One partition's lane. Its owner awaits `run`; `drain` lets the batch under way finish, cancelling does not.

    `is_member` asks the group whether this worker still belongs to it; `diagnose` finds what lies behind an error
    (diagnosis.py); `on_hang` ends the process, after it wrote down which tickets it hung on.
    """

    def __init__(
        self,
        source: TopicPartition,
        *,
        consumer: AIOKafkaConsumer,
        opening: Opening,
        output: Output,
        passing: PassingOver,
        under_ways: UnderWays,
        floor: Floor,
        taker: BatchTaker,
        telemetry: Telemetry,
        pace: Pace,
        positions: MutableMapping[TopicPartition, int],
        readiness: Readiness,
        steps: Steps,
        is_member: Callable[[], Awaitable[bool]],
        diagnose: Callable[[Exception], Awaitable[Exception]],
        on_hang: Callable[[TopicPartition, BatchHung], Awaitable[None]],
    ) -> None:
        self.source = source
        self._consumer = consumer
        self._opening = opening
        self._output = output
        self._reader = PartitionReader(consumer, source, positions=positions)
        self._careful = CarefulTaker(
            source,
            reader=self._reader,
            passing=passing,
            under_ways=under_ways,
            floor=floor,
            telemetry=telemetry,
        )
        self._pieces = Pieces(
            f"{source.topic}:{source.partition}",
            reader=self._reader,
            careful=self._careful,
            floor=floor,
            taker=taker,
            pace=pace,
            verify=partial(opening.verify, source),
        )
        self._passing = passing
        self._under_ways = under_ways
        self._telemetry = telemetry
        self._readiness = readiness
        self._steps = steps
        self._is_member = is_member
        self._diagnose = diagnose
        self._on_hang = on_hang
        self._next_offset: int | None = None
        # The token under which something may stand in Redis as under way.
        self._token: LaneToken | None = None
        # What the lane stands before and cannot read, until it is past it.
        self._unreadable: range | None = None
        self._drained = asyncio.Event()
        # The task that serves, while it does, and why it shall not any more.
        self._serving: asyncio.Task[None] | None = None
        self._interruption: LaneFault | None = None
        self.name = f"lane {source.topic}:{source.partition}"

    async def run(self) -> None:
        """Serve the partition until drained or cancelled. Raises nothing else."""
        failures = 0
        try:
            while not self._drained.is_set():
                began_at = self._next_offset
                try:
                    await self._serve_until_interrupted()
                except BatchHung as hung:
                    await self._note_hang(hung)
                    await self._on_hang(self.source, hung)
                except Exception as err:  # noqa: BLE001 - 7: one way to recover from everything
                    is_stuck = self._next_offset == began_at and not self._pieces.is_narrowing
                    failures = failures + 1 if is_stuck else 1
                    with self._step("recovering"):
                        await self._recover(err, failures)
        finally:
            self._stands_before(None)
            with self._step("closing"):
                await self._withdraw()
                await self._output.close()

    @property
    def care(self) -> str:
        """What it says of a lane that takes records one by one, since a worker ended there; mostly empty."""
        return self._careful.says(self._next_offset or 0)

    def drain(self) -> None:
        """Take no further batch; `run` returns once the one under way is committed or failed."""
        self._drained.set()

    def interrupt(self, fault: LaneFault) -> None:
        """Give up what is under way, and recover from `fault`, which was found beside the lane: as if a step had raised
        it. A lane that waits to open again is left alone, for it looks at everything anew."""
        if self._serving is None or self._interruption is not None:
            return
        self._interruption = fault
        self._serving.cancel()

    async def _serve_until_interrupted(self) -> None:
        """1 to 6, until drained. Raises what a step raises, or what `interrupt` was given."""
        task = asyncio.current_task()
        self._serving = task
        try:
            with self._step("opening"):
                start = await self._open()
            await self._serve(start)
        except (Exception, asyncio.CancelledError) as err:
            fault, self._interruption = self._interruption, None
            # A step may have turned the cancellation into an error of its own; one that came from elsewhere too counts.
            if fault is None or task is None or (task.uncancel() and isinstance(err, asyncio.CancelledError)):
                raise
            raise fault from err
        finally:
            self._serving = None

    async def _open(self) -> Start:
        """1 and 2."""
        if self._unreadable is None:
            self._readiness.wait(self.name, "opening")
        # A worker that was stopped and woken must not fence its successor: the group is asked first.
        if not await self._is_member():
            raise NotAMember
        self._token = token = await self._opening.take_token(self.source)
        await self._output.open(token)  # 1
        start = await self._opening.read_start(self.source, token)  # 2
        self._reader.seek(start.next_offset)
        self._pieces.reopened()
        await self._careful.begin(token, start.care, start.next_offset)
        if not self._careful.is_on:
            self._consumer.resume(self.source)
        log.info("%s opened at offset %d", self.name, start.next_offset)
        if self._unreadable is None and not self._pieces.is_held_at(start.next_offset):
            self._readiness.work(self.name)
        return start

    async def _serve(self, start: Start) -> None:
        self._next_offset = start.next_offset
        while not self._drained.is_set():
            if self._interruption is not None:
                # The cancellation got lost: before Python 3.12 asyncio.wait_for swallows some.
                raise self._interruption
            try:
                with self._step("taking a piece", limit_s=TAKE_LIMIT_S):
                    next_offset = await self._pieces.take_next(self._next_offset, start, self._output)
            except UnreadableBatch as batch:
                with self._step("passing over a batch"):
                    next_offset = await self._pass_over(batch, start.token)
            if next_offset is not None:
                self._next_offset = next_offset
                self._stands_before(None)
                self._readiness.work(self.name)

    async def _pass_over(self, batch: UnreadableBatch, token: LaneToken) -> int:
        self._stands_before(batch.offsets)
        passed_to = await self._passing.pass_over(batch, token=token, output=self._output)
        self._reader.seek(passed_to)
        return passed_to

    def _stands_before(self, unreadable: range | None) -> None:
        """Tell /readyz and the metrics of a batch that cannot be read, and with None that it is past."""
        if unreadable == self._unreadable:
            return
        self._unreadable = unreadable
        self._telemetry.unreadable_batch(self.source.topic, self.source.partition, unreadable)

    def _step(self, what: str, *, limit_s: float = STEP_LIMIT_S) -> AbstractContextManager[object]:
        return self._steps.step(f"{self.name}: {what}", limit_s=limit_s)

    async def _recover(self, err: Exception, failures: int) -> None:
        """7. Drop the producer and wait; `run` goes on at 1."""
        err = await self._diagnose(err)
        how = handling(err)
        remedy = f"; {how.remedy}" if how.remedy else ""
        # A time-out says mostly nothing of itself.
        self._readiness.wait(self.name, f"{how.cause}: {str(err) or repr(err)}{remedy}")
        self._telemetry.reopened(how.cause)
        if how.action is Action.REFUSE:
            delay = REFUSAL_RETRY_S
            log.error(
                "%s refuses (%s): %s; %s", self.name, how.cause, err, how.remedy, extra={"cause": how.cause}
            )
        else:
            delay = min(BACK_OFF_MOST_S, BACK_OFF_FIRST_S * 2 ** (failures - 1)) * random.uniform(0.5, 1)  # noqa: S311
            log.warning(
                "%s reopens in %.1f s (%s): %r", self.name, delay, how.cause, err, extra={"cause": how.cause}
            )
        await self._withdraw()
        await self._output.close()
        with contextlib.suppress(TimeoutError):  # the wait is over
            async with asyncio.timeout(delay):
                await self._drained.wait()

    async def _note_hang(self, hung: BatchHung) -> None:
        """For the successor: it takes these alone, and one that hung alone not again."""
        if self._token is None:
            return
        offsets = range(hung.offsets[0], hung.offsets[-1] + 1)
        try:
            async with asyncio.timeout(NOTE_TIMEOUT_S):
                await self._under_ways.note(
                    self._token, UnderWay(Doing.HUNG, offsets, is_alone=self._careful.is_on)
                )
        except (RedisError, Superseded, OSError, TimeoutError) as err:
            log.warning("%s: the hang could not be written down (%r); the next may hang too", self.name, err)

    async def _withdraw(self) -> None:
        """Nothing is under way any more, and this process lives: what the lane wrote down blames nobody."""
        token, self._token = self._token, None
        self._careful.end()
        if token is None:
            return
        try:
            async with asyncio.timeout(NOTE_TIMEOUT_S):
                await self._under_ways.withdraw(token)
        except (RedisError, OSError, TimeoutError) as err:
            log.debug("%s: what was under way is taken back later (%r)", self.name, err)
