"""A lane: all that serves one assigned input partition, and the delivery protocol in the order of its steps.

    0 ASSIGN   the partition is paused before its lane starts (assignment.py)
    1 FENCE    start the output's producer: it aborts a predecessor's transaction and cuts off zombies
    2 READ     the committed offset, after fencing, against the marks in Redis; seek; resume
    3 DECODE   records to tickets; malformed ones ride the same transaction to dead-letter
    4 CLAIM    the keys, in one round trip
    5 DECIDE   what is owned, before the transaction opens: an open one holds up every read_committed reader
    6 COMMIT   records and the offset one past the batch, together
    7 REOPEN   after anything else: drop the producer, back off, go to 1

Promise: a crash between any two steps never emits twice and never loses; while Redis or the broker is away the lane
waits, and readiness says for which. There is no pending state: what a lane finds at step 2 is all that it knows.
Relies on: the fence, proven in tests/delivery/test_spike.py, and claims that are durable. Source: DESIGN section 4.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from ticketgate.streams.batch import BatchHung, BatchParts, take_batch
from ticketgate.streams.opening import Opening, Start
from ticketgate.streams.readiness import Readiness
from ticketgate.streams.recovery import Action, Handling, LaneFault, handling
from ticketgate.streams.transaction import Output

log = logging.getLogger(__name__)

# How long one poll waits for records: it bounds how late a lane sees that it shall drain.
POLL_MS = 200
# The first wait after a failure and the longest: a broker that restarts needs seconds, and lanes that try without
# pause would keep it from coming up.
BACK_OFF_FIRST_S = 0.2
BACK_OFF_MOST_S = 5.0
# How often a refused lane looks whether a person mended what it refused for.
REFUSAL_RETRY_S = 10.0


class NotAMember(LaneFault):
    """The group does not know this worker any more: another one may serve the partition, and must not be fenced."""

    def __init__(self) -> None:
        super().__init__("the group does not know this worker", Handling(Action.REOPEN, "not_a_member"))


class PositionMoved(LaneFault):
    """The consumer gave a record from before the lane's position. It is not taken; the lane seeks again."""

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(
            f"expected offset {expected} or later, got {found}", Handling(Action.REOPEN, "position_moved")
        )


class Lane:
    """One partition's lane. Its owner awaits `run`; `drain` lets the batch under way finish, cancelling does not.

    `is_member` asks the group whether this worker still belongs to it; `on_hang` ends the process, after it wrote down
    which tickets it hung on.
    """

    def __init__(
        self,
        source: TopicPartition,
        *,
        consumer: AIOKafkaConsumer,
        opening: Opening,
        output: Output,
        parts: BatchParts,
        batch_size: int,
        readiness: Readiness,
        is_member: Callable[[], Awaitable[bool]],
        on_hang: Callable[[TopicPartition, BatchHung], Awaitable[None]],
    ) -> None:
        self.source = source
        self._consumer = consumer
        self._opening = opening
        self._output = output
        self._parts = parts
        self._batch_size = batch_size
        self._readiness = readiness
        self._is_member = is_member
        self._on_hang = on_hang
        self._next_offset: int | None = None
        self._drained = asyncio.Event()
        self.name = f"lane {source.topic}:{source.partition}"

    async def run(self) -> None:
        """Serve the partition until drained or cancelled. Raises nothing else."""
        failures = 0
        try:
            while not self._drained.is_set():
                began_at = self._next_offset
                try:
                    await self._serve(await self._open())
                except BatchHung as hung:
                    await self._on_hang(self.source, hung)
                except Exception as err:  # noqa: BLE001 - 7: one way to recover from everything
                    failures = failures + 1 if self._next_offset == began_at else 1
                    await self._recover(err, failures)
        finally:
            await self._output.close()

    def drain(self) -> None:
        """Take no further batch; `run` returns once the one under way is committed or failed."""
        self._drained.set()

    async def _open(self) -> Start:
        """1 and 2."""
        self._readiness.wait(self.name, "opening")
        # A worker that was stopped and woken must not fence its successor: the group is asked first.
        if not await self._is_member():
            raise NotAMember
        await self._output.open()  # 1
        start = await self._opening.read_start(self.source)  # 2
        self._consumer.seek(self.source, start.next_offset)
        self._consumer.resume(self.source)
        log.info("%s opened at offset %d", self.name, start.next_offset)
        self._readiness.work(self.name)
        return start

    async def _serve(self, start: Start) -> None:
        self._next_offset, committed = start.next_offset, start.committed
        while not self._drained.is_set():
            records = await self._poll(self._next_offset)
            if records:
                committed = await take_batch(
                    self._parts, records, committed=committed, hangs=start.hangs, output=self._output
                )
                self._next_offset = committed

    async def _poll(self, next_offset: int) -> Sequence[ConsumerRecord]:
        # Each lane asks for its own partition alone: what aiokafka raises for another stays with that one's lane.
        source = self.source
        polled = await self._consumer.getmany(source, timeout_ms=POLL_MS, max_records=self._batch_size)
        records: Sequence[ConsumerRecord] = polled.get(source, [])
        if records and records[0].offset < next_offset:
            raise PositionMoved(expected=next_offset, found=records[0].offset)
        return records

    async def _recover(self, err: Exception, failures: int) -> None:
        """7. Drop the producer and wait; `run` goes on at 1."""
        how = handling(err)
        self._readiness.wait(self.name, f"{how.cause}: {err}")
        self._parts.telemetry.reopened(how.cause)
        if how.action is Action.REFUSE:
            delay = REFUSAL_RETRY_S
            log.error("%s refuses (%s): %s; %s", self.name, how.cause, err, how.remedy)
        else:
            delay = min(BACK_OFF_MOST_S, BACK_OFF_FIRST_S * 2 ** (failures - 1)) * random.uniform(0.5, 1)  # noqa: S311
            log.warning("%s reopens in %.1f s (%s): %r", self.name, delay, how.cause, err)
        await self._output.close()
        with contextlib.suppress(TimeoutError):  # the wait is over
            async with asyncio.timeout(delay):
                await self._drained.wait()
