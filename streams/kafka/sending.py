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
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

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
# Bounds memory, and what is unknown after Ctrl-C.
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
    """What has become of the records so far. `lost`: the broker went away, and what follows was not sent."""

    sent: int = 0
    refused: list[Refused] = field(default_factory=list)
    lost: Unreachable | None = None


async def send(
    records: AsyncIterator[tuple[int, str, Record]],
    *,
    connection: KafkaConnection,
    rate: float | None,
    sending: Sending,
    on_sent: Callable[[int], object],
) -> None:
    """Send the records, each with its line number and topic, at most `rate` a second; `sending` tells what became of
    them.

    The topics must exist. What `records` raises comes through, once what is under way has been awaited.
    """
    async with _producer(connection) as producer:
        under_way = _UnderWay(sending, on_sent)
        clock = asyncio.get_running_loop().time
        start = clock()
        count = 0
        try:
            async for line, topic, record in records:
                if rate is not None:
                    await asyncio.sleep(max(0.0, start + count / rate - clock()))
                count += 1
                await under_way.add(line, _send(producer, topic, record))
                if sending.lost is not None:
                    return
        finally:
            await under_way.settle()


class _UnderWay:
    """The records that the broker has not yet acknowledged, in the order sent."""

    def __init__(self, sending: Sending, on_sent: Callable[[int], object]) -> None:
        self._sending, self._on_sent = sending, on_sent
        self._waiting: deque[tuple[int, asyncio.Future[RecordMetadata]]] = deque()

    async def add(self, line: int, handing_over: Awaitable[asyncio.Future[RecordMetadata]]) -> None:
        """Hand a record over; waits while too many are under way."""
        try:
            self._waiting.append((line, await handing_over))
        except (KafkaError, _CannotBeSent) as err:
            self._failed(line, err)
        while self._waiting and (self._waiting[0][1].done() or len(self._waiting) >= MOST_UNDER_WAY):
            await self._settle_first()

    async def settle(self) -> None:
        """Wait for all; the producer gives each up in time."""
        while self._waiting:
            await self._settle_first()

    async def _settle_first(self) -> None:
        line, delivery = self._waiting.popleft()
        try:
            await delivery
        except KafkaError as err:
            self._failed(line, err)
        else:
            self._sending.sent += 1
            self._on_sent(1)

    def _failed(self, line: int, err: Exception) -> None:
        if not getattr(err, "retriable", False):
            self._sending.refused.append(Refused(line, _reason(err)))
        elif self._sending.lost is None:
            # aiokafka tried again until the time was up.
            self._sending.lost = Unreachable(
                "TICKETGATE_KAFKA",
                f"the broker stopped answering at line {line} ({_reason(err)})",
                f"see what ails the broker, then send again from line {line}",
            )


class _CannotBeSent(Exception):
    """A record that the broker is not asked to take; the message says why, and the way out."""


@asynccontextmanager
async def _producer(connection: KafkaConnection) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        **connection.arguments(),
        acks="all",
        request_timeout_ms=round(DELIVERY_TIMEOUT_S * 1000),
        max_request_size=MAX_REQUEST_BYTES,
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
