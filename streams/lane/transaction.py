"""One lane's output: a batch's records and the input offset they were made from, together or not at all.

    closed ── open: fence ──▶ ready ── commit: begin, send, add offset, end ──▶ ready
                                └───────── error or time limit ─────────────▶ closed

Promise: after `commit` returned, records and offset are committed; after it raised, nothing is known, and only a
reopening tells: the successor's fence ends the transaction, and the committed offset says how. A producer that
raised once is never used again, and none takes its place but by a token that was taken since: a lane that went on
under a bare new epoch could be one that was fenced, and would commit beside its successor.
`OffsetCommit` is the same shape for a broker without transactions: records first, then the offset, so a crash between
the two repeats the batch.
Relies on: one transactional id for each input partition, so that a fence meets just its predecessor
(recovery.py has the table from error to action). See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.producer.message_accumulator import BatchBuilder
from ticketgate.codecs.records.headers import Header
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.kafka.internals import placing, sender_task, transaction_waiter
from ticketgate.streams.kafka.one_attempt import allow_one_attempt, notice, unanswered

log = logging.getLogger(__name__)

# Starting asks for metadata and the coordinator and waits for a predecessor's transaction to end; on a broker that
# restarts, aiokafka would try for ever.
OPEN_TIMEOUT_S = 30.0
# `stop()` waits for what is in flight, without a limit of its own, and never returns when the broker died.
CLOSE_TIMEOUT_S = 3.0
# A request that the broker does not answer is given up then, and its epoch with it (one_attempt.py).
REQUEST_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to send. Its time is this machine's: by any other, retention would take it too soon or never."""

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[Header, ...] = ()


class Output(Protocol):
    """What a lane needs of its output, under either guarantee."""

    async def open(self, token: LaneToken) -> None:
        """Step 1, once for each token. Raises aiokafka's errors or TimeoutError."""
        ...

    async def commit(self, records: Sequence[Outgoing], next_offset: int) -> None:
        """Step 6. Raises aiokafka's errors, `Unanswered` or TimeoutError; the outcome is unknown then, and the output
        takes nothing more until it is opened again."""
        ...

    async def close(self) -> None:
        """Let go of the connection within a bound; never raises."""
        ...


ProducerFactory = Callable[..., AIOKafkaProducer]


def transactional_id(namespace: str, source: TopicPartition) -> str:
    """By which the broker knows all that ever serve an input partition, and fences all but the last."""
    return f"{namespace}.{source.topic}.{source.partition}"


class _ProducerOutput:
    """What both guarantees share: one producer, opened anew each time, closed within a bound."""

    def __init__(self, new_producer: Callable[[], AIOKafkaProducer]) -> None:
        self._new_producer = new_producer
        self._producer: AIOKafkaProducer | None = None
        self._is_usable = False
        self._token: LaneToken | None = None

    async def open(self, token: LaneToken) -> None:
        """Make and start a producer in the place of the last one, within OPEN_TIMEOUT_S."""
        if token == self._token:
            raise RuntimeError("opened twice by one token: the lane must begin with its first step")
        self._token = token
        await self.close()
        self._producer = self._new_producer()
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            await self._producer.start()
        self._is_usable = True

    async def close(self) -> None:
        """Drop the producer. An open transaction is left to the successor's fence, which aborts it."""
        self._is_usable = False
        producer, self._producer = self._producer, None
        if producer is not None:
            await abandon(producer)

    @asynccontextmanager
    async def _committing(self, timeout_s: float) -> AsyncIterator[AIOKafkaProducer]:
        """The producer, within a time limit and until anything is raised."""
        if self._producer is None or not self._is_usable:
            raise RuntimeError("commit before open: the lane must fence first")
        producer, self._is_usable = self._producer, False
        try:
            async with asyncio.timeout(timeout_s):
                yield producer
        except KafkaError as err:
            if (found := unanswered(producer)) is not None:
                raise found from err
            raise
        self._is_usable = True


class Transactions(_ProducerOutput):
    """Exactly once: the transactional producer of one input partition. Opening it fences its predecessor.

    `new_producer` makes an AIOKafkaProducer that knows the way to the broker, out of `options` and those given here;
    `transactional_id` is the function's; `commit_timeout_s` bounds one whole transaction; what `telling` gives goes
    with each offset as its metadata.
    """

    def __init__(
        self,
        *,
        source: TopicPartition,
        group: str,
        transactional_id: str,
        transaction_timeout_s: float,
        commit_timeout_s: float,
        new_producer: ProducerFactory,
        telling: Callable[[], str] = lambda: "",
        **options: object,
    ) -> None:
        super().__init__(
            lambda: allow_one_attempt(
                new_producer(
                    transactional_id=transactional_id,
                    transaction_timeout_ms=round(transaction_timeout_s * 1000),
                    request_timeout_ms=REQUEST_TIMEOUT_MS,
                    **options,
                )
            )
        )
        self._source = source
        self._group = group
        self._commit_timeout_s = commit_timeout_s
        self._telling = telling

    async def commit(self, records: Sequence[Outgoing], next_offset: int) -> None:
        """One transaction with all records and the offset one past the batch's last."""
        async with self._committing(self._commit_timeout_s) as producer:
            await producer.begin_transaction()
            await _send(producer, records)
            offset = (next_offset, self._telling())
            await producer.send_offsets_to_transaction({self._source: offset}, self._group)
            await producer.commit_transaction()


class OffsetCommit(_ProducerOutput):
    """At least once: a plain producer, then a commit of the consumer's offset. Opening it fences nobody: a zombie can
    still repeat its batch."""

    def __init__(
        self,
        *,
        source: TopicPartition,
        consumer: AIOKafkaConsumer,
        commit_timeout_s: float,
        new_producer: ProducerFactory,
        telling: Callable[[], str] = lambda: "",
        **options: object,
    ) -> None:
        super().__init__(lambda: new_producer(acks="all", request_timeout_ms=REQUEST_TIMEOUT_MS, **options))
        self._source = source
        self._consumer = consumer
        self._commit_timeout_s = commit_timeout_s
        self._telling = telling

    async def commit(self, records: Sequence[Outgoing], next_offset: int) -> None:
        """Send all, wait for each, then commit the offset."""
        async with self._committing(self._commit_timeout_s) as producer:
            await _send(producer, records)
            await self._consumer.commit({self._source: (next_offset, self._telling())})


async def _send(producer: AIOKafkaProducer, records: Sequence[Outgoing]) -> None:
    """Send all, in order in each partition, and wait until the broker has them; the first failure is raised."""
    deliveries: list[asyncio.Future[object]] = []
    try:
        # The first batch of each partition, then the second: aiokafka takes one a partition until that is on its way.
        for turn in itertools.zip_longest(*(await _batches(producer, records)).values()):
            for topic, partition, batch in filter(None, turn):
                deliveries.append(await producer.send_batch(batch, topic, partition=partition))
    finally:
        for delivery in deliveries:
            notice(delivery)  # where a later batch is not taken any more
    # All are awaited, so that none fails unseen.
    for outcome in await asyncio.gather(*deliveries, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def _batches(
    producer: AIOKafkaProducer, records: Sequence[Outgoing]
) -> Mapping[tuple[str, int], list[tuple[str, int, BatchBuilder]]]:
    """The records of each topic and partition in prepared batches, where `send` would put them. One delivery a batch
    takes half of what one a record does: a future, a place in a queue and a copy of its metadata each."""
    places = {topic: await _placing(producer, topic) for topic in {record.topic: None for record in records}}
    batches: dict[tuple[str, int], list[tuple[str, int, BatchBuilder]]] = {}
    for record in records:
        topic = record.topic
        partition = places[topic](record.key)
        of_partition = batches.setdefault((topic, partition), [])
        if not of_partition or not _append(of_partition[-1][2], record):
            # The first record of a batch always fits.
            batch = producer.create_batch()
            _append(batch, record)
            of_partition.append((topic, partition, batch))
    return batches


async def _placing(producer: AIOKafkaProducer, topic: str) -> Callable[[bytes | None], int]:
    await producer.partitions_for(topic)  # its metadata is known then
    return placing(producer, topic)


def _append(batch: BatchBuilder, record: Outgoing) -> bool:
    """Whether there was room."""
    added = batch.append(timestamp=None, key=record.key, value=record.value, headers=list(record.headers))
    return added is not None


async def abandon(producer: AIOKafkaProducer) -> None:
    """Let go of a producer within a bound, whatever ails it."""
    if (waiter := transaction_waiter(producer)) is not None:
        notice(waiter)  # of a transaction that failed before its commit was asked for
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await producer.stop()
    except BaseException as err:
        # Whatever ails it, or if its lane is cancelled meanwhile: it is not used again, and the broker fences it.
        log.debug("a producer did not stop cleanly (%r); its connections are cut", err)
        await _cut(producer)
        if not isinstance(err, Exception):
            raise


async def _cut(producer: AIOKafkaProducer) -> None:
    sender = sender_task(producer)
    if sender is not None:
        sender.cancel()
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await producer.client.close()
    except Exception as err:  # noqa: BLE001 - the time limits of its requests end what is left
        log.debug("nor did its connections close (%r)", err)
