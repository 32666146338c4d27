"""Send records to topics, in order, and learn of each whether the broker has it.

Promise: what is counted as sent is acknowledged by all replicas in sync. A record that the broker refuses does not
keep back the others. A broker that stops answering ends the sending, and what was acknowledged before is known.
A record whose acknowledgement was lost is sent again and may be there twice; the gate suppresses such a ticket or
proposal.

The producer is not idempotent: not every broker has that, and in aiokafka one refused batch leaves a gap in the
sequence for which the broker then refuses all that follow.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata
from ticketgate.codecs.records.headers import escape_name, has_readable_name
from ticketgate.codecs.values.malformed import quote
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.envelope import Record

# A broker that is there acknowledges in milliseconds, one that restarts is back in seconds.
DELIVERY_TIMEOUT_S = 20.0
# `stop()` waits for a broker that died, without a limit of its own.
CLOSE_TIMEOUT_S = 3.0
# Bounds memory, and what is unknown after a kill.
MOST_UNDER_WAY = 1_000
# Whether a record is too large is for the broker to say, not for the client's default of 1 MiB.
MAX_REQUEST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that was not taken. `line`: where it came from."""

    line: int
    reason: str


@dataclass(slots=True)
class Sending:
    """What has become of the records so far. `lost`: the broker went away, and what follows was not sent.

    `next_line`: the first line of which it is not known that the broker has it or refuses it; all before are done with.
    `unknown`: how many were under way when the sending was cut short.
    """

    sent: int = 0
    next_line: int = 1
    unknown: int = 0
    refused: list[Refused] = field(default_factory=list)
    lost: Unreachable | None = None


async def send(
    records: AsyncIterator[tuple[int, str, Record]],
    *,
    connection: KafkaConnection,
    rate: float | None,
    sending: Sending,
    on_sent: Callable[[int], object],
    stop: asyncio.Event | None = None,
    compression: Literal["gzip"] | None = None,
) -> None:
    """Send the records, each with its line number and topic, at most `rate` a second; `sending` tells what became of
    them.

    The topics must exist. What `records` raises comes through, once what is under way has been awaited. Once `stop` is
    set nothing more is sent, and what is under way is awaited; if cancelled, it is not, and `sending` tells of what was
    acknowledged by then.
    """
    stop = stop or asyncio.Event()
    async with _producer(connection, compression) as producer:
        under_way = _UnderWay(sending, on_sent)
        clock = asyncio.get_running_loop().time
        start = clock()
        count = 0
        try:
            async for line, topic, record in records:
                if rate is not None:
                    await _sleep(max(0.0, start + count / rate - clock()), stop)
                if stop.is_set():
                    break
                count += 1
                await under_way.add(line, _send(producer, topic, record))
                if sending.lost is not None:
                    break
        except asyncio.CancelledError:
            # Somebody is in a hurry: what is under way stays unknown.
            sending.unknown = under_way.count
            raise
        except BaseException:
            await under_way.settle()
            raise
        else:
            await under_way.settle()


async def _sleep(seconds: float, stop: asyncio.Event) -> None:
    """Sleep, but not on once `stop` is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


class _UnderWay:
    """The records that the broker has not yet acknowledged, in the order sent."""

    def __init__(self, sending: Sending, on_sent: Callable[[int], object]) -> None:
        self._sending, self._on_sent = sending, on_sent
        self._waiting: deque[tuple[int, asyncio.Future[RecordMetadata]]] = deque()
        self._last = 0

    async def add(self, line: int, handing_over: Awaitable[asyncio.Future[RecordMetadata]]) -> None:
        """Hand a record over; waits while too many are under way."""
        if not self._waiting:
            self._sending.next_line = line
        try:
            self._waiting.append((line, await handing_over))
            self._last = line
        except (KafkaError, _CannotBeSent) as err:
            self._failed(line, err)
            self._last = line
            self._tell_next()
        while self._waiting and (self._waiting[0][1].done() or len(self._waiting) >= MOST_UNDER_WAY):
            await self._settle_first()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._waiting)

    async def settle(self) -> None:
        """Wait for all; the producer gives each up in time."""
        while self._waiting:
            await self._settle_first()

    async def _settle_first(self) -> None:
        line, delivery = self._waiting[0]
        try:
            # A wait that is cut short must not take the delivery with it.
            await asyncio.shield(delivery)
        except KafkaError as err:
            self._failed(line, err)
        else:
            self._sending.sent += 1
            self._on_sent(1)
        self._waiting.popleft()
        self._tell_next()

    def _tell_next(self) -> None:
        if self._sending.lost is None:
            self._sending.next_line = self._waiting[0][0] if self._waiting else self._last + 1

    def _failed(self, line: int, err: Exception) -> None:
        if not getattr(err, "retriable", False):
            self._sending.refused.append(Refused(line, _reason(err)))
        elif self._sending.lost is None:
            # aiokafka tried again until the time was up.
            self._sending.lost = Unreachable(
                "TICKETGATE_KAFKA",
                f"the broker stopped answering at line {line} ({_reason(err)})",
                "see what ails the broker, and try again",
            )
            self._sending.next_line = line


class _CannotBeSent(Exception):
    """A record that the broker is not asked to take; the message says why, and the way out."""


@asynccontextmanager
async def _producer(
    connection: KafkaConnection, compression: Literal["gzip"] | None
) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        **connection.arguments(),
        acks="all",
        request_timeout_ms=round(DELIVERY_TIMEOUT_S * 1000),
        max_request_size=MAX_REQUEST_BYTES,
        compression_type=compression,
    )
    try:
        await producer.start()
        yield producer
    finally:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await producer.stop()
        except TimeoutError:
            # What could be sent has been awaited, and the process ends.
            pass


async def _send(producer: AIOKafkaProducer, topic: str, record: Record) -> asyncio.Future[RecordMetadata]:
    """Hand a record to the producer; the future tells when the broker has it."""
    partitions: set[int] = await producer.partitions_for(topic)
    if record.partition is not None and record.partition not in partitions:
        raise _CannotBeSent(
            f"{topic} has no partition {record.partition} but {len(partitions)};"
            " drop the field, or say --by-key to place records by their key"
        )
    headers = list(record.headers)
    # aiokafka makes names out of text.
    if unreadable := [escape_name(header[0]) for header in headers if not has_readable_name(header)]:
        raise _CannotBeSent(f"the name of header {quote(unreadable[0])} is not UTF-8; drop the header")
    if record.key is None and record.value is None:
        # `send` will not take such a record, which other clients can write.
        batch = producer.create_batch()
        batch.append(timestamp=record.timestamp_ms, key=None, value=None, headers=headers)
        batch.close()
        place = record.partition if record.partition is not None else random.choice(list(partitions))  # noqa: S311
        delivery: asyncio.Future[RecordMetadata] = await producer.send_batch(batch, topic, partition=place)
    else:
        delivery = await producer.send(
            topic,
            record.value,
            key=record.key,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
            headers=headers,
        )
    return delivery


def _reason(err: Exception) -> str:
    """`MessageSizeTooLargeError: …` as the broker's clients name it, in one line."""
    if isinstance(err, _CannotBeSent):
        return str(err)
    name = type(err).__name__
    said = " ".join(str(err).split())
    return said if said.startswith(name) else f"{name}: {said}" if said else name
