"""Read on where aiokafka cannot: fetch a partition's bytes and unpack them tolerantly.

aiokafka raises out of `getmany` for a header name that is not UTF-8 and for a batch that it cannot unpack, drops what
it had unpacked before, and would raise so for ever. Here the good records come out, those in the same batch too, and a
batch that truly cannot be read is named by its coordinates.

Promise: what comes out is what a read_committed consumer would have been given, in order and without a gap, up to
`next_offset`; only header names differ (rawbatches.py). Source: DESIGN section 4, step 2; issue 3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import (
    ConsumerStoppedError,
    CorruptRecordException,
    KafkaError,
    LeaderNotAvailableError,
    NoError,
    RecordTooLargeError,
    UnsupportedCodecError,
    for_code,
)
from aiokafka.protocol.fetch import FetchRequest
from ticketgate.streams.rawbatches import RawBatches, base_offset, stated_end
from ticketgate.streams.recovery import Action, Handling, LaneFault

# As much as the consumer's own fetches. The broker gives a first batch that is larger whole.
FETCH_BYTES = 2**20
FETCH_WAIT_MS = 500
# A broker that is there answers at once; the consumer's own fetch, which stands before in line, takes 0.5 s.
FETCH_TIMEOUT_S = 15.0

# The Fetch version from which on the list of aborted transactions is not the last but one field.
_FETCH_WITH_REPLICA = 11


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Records, and where the next fetch begins: not before one past the last of them."""

    records: tuple[ConsumerRecord, ...]
    next_offset: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets of one partition that cannot be read."""

    source: TopicPartition
    offsets: range


class UnreadableBatch(LaneFault):
    """The next batch of a partition cannot be read, and so neither can any record in `offsets`.

    Only this partition's lane stops. `data` are the batch's bytes, `reason` says what is wrong with it.
    """

    def __init__(self, source: TopicPartition, offsets: range, *, data: bytes, reason: str) -> None:
        first, last = f"{source.topic}:{source.partition}:{offsets.start}", offsets.stop - 1
        super().__init__(
            f"the batch at {first} to {last} cannot be read: {reason}",
            Handling(
                Action.REFUSE,
                "unreadable_batch",
                f"restore it from a healthy replica, or give it up: `ticketgate dead-letter skip {first}`",
            ),
        )
        self.source, self.offsets, self.data, self.reason = source, offsets, data, reason


def is_about_bytes(error: Exception) -> bool:
    """Whether `getmany` raised while it unpacked what it had fetched.

    What the broker or the group says comes as a KafkaError; unpacking raises these three of them, and whatever
    UTF-8 and the codecs raise.
    """
    if isinstance(error, (CorruptRecordException, UnsupportedCodecError, RecordTooLargeError)):
        return True
    return not isinstance(error, (KafkaError, ConsumerStoppedError, TimeoutError))


async def poll(
    consumer: AIOKafkaConsumer,
    positions: Mapping[TopicPartition, int],
    *,
    timeout_ms: int,
    pass_over: Callable[[UnreadableBatch], None],
) -> Mapping[TopicPartition, Sequence[ConsumerRecord]]:
    """The next records of a consumer that stands at `positions`, and where it cannot unpack them, what can be salvaged.

    A batch that nobody can read is told to `pass_over`, and is passed over unless that raises. Raises aiokafka's
    errors and TimeoutError.
    """
    try:
        found: Mapping[TopicPartition, Sequence[ConsumerRecord]] = await consumer.getmany(
            timeout_ms=timeout_ms
        )
        return found
    except Exception as err:
        if not is_about_bytes(err):
            raise
    # It does not say of which partition, and has dropped what it had unpacked of others.
    return {each: await _read_on(consumer, each, at, pass_over) for each, at in positions.items()}


async def _read_on(
    consumer: AIOKafkaConsumer,
    source: TopicPartition,
    offset: int,
    pass_over: Callable[[UnreadableBatch], None],
) -> Sequence[ConsumerRecord]:
    try:
        salvaged = await salvage(consumer, source, offset)
    except UnreadableBatch as batch:
        pass_over(batch)
        salvaged = Salvaged((), batch.offsets.stop)
    # Also lets aiokafka forget what it holds of this partition and cannot unpack.
    consumer.seek(source, salvaged.next_offset)
    return salvaged.records


async def salvage(consumer: AIOKafkaConsumer, source: TopicPartition, offset: int) -> Salvaged:
    """What one fetch from `offset` gives, up to the first batch that cannot be read.

    Raises `UnreadableBatch` if that is the very first, and aiokafka's errors or TimeoutError. The consumer's own
    position does not move.
    """
    fetched = await _fetch(consumer, source, offset)
    batches = RawBatches(fetched.data)
    unpacked = PartitionRecords(
        source,
        batches,
        fetched.aborted_transactions,
        offset,
        None,
        None,
        True,
        READ_COMMITTED,
    )
    if fetched.data and not batches.has_next():
        raise UnreadableBatch(
            source,
            range(offset, max(offset + 1, fetched.end)),
            data=fetched.data,
            reason="its length goes beyond its bytes",
        )
    records: list[ConsumerRecord] = []
    try:
        # One by one, as what was unpacked before a broken batch counts.
        for record in unpacked:
            records.append(record)  # noqa: PERF402
    except Exception as err:
        next_offset: int = unpacked.next_fetch_offset
        if next_offset == offset:
            offsets = _extent(batches, offset, fetched.end)
            raise UnreadableBatch(source, offsets, data=batches.current, reason=str(err)) from err
        # What came before it is taken first; the next fetch begins with it.
    return Salvaged(tuple(records), unpacked.next_fetch_offset)


@dataclass(frozen=True, slots=True)
class _Fetched:
    """Bytes of whole batches; `end` is where the committed records end."""

    data: bytes
    aborted_transactions: list[tuple[int, int]]
    end: int


async def _fetch(consumer: AIOKafkaConsumer, source: TopicPartition, offset: int) -> _Fetched:
    """As aiokafka's fetcher asks, for one partition; it has no public way to ask for bytes."""
    client: Any = consumer._client
    leader = client.cluster.leader_for_partition(source)
    if leader is None or leader == -1:
        raise LeaderNotAvailableError(source)
    wanted = [(source.topic, [(source.partition, offset, FETCH_BYTES)])]
    request = FetchRequest(FETCH_WAIT_MS, 1, FETCH_BYTES, READ_COMMITTED, wanted)
    async with asyncio.timeout(FETCH_TIMEOUT_S):
        response = await client.send(leader, request)
    ((_, ((_, error_code, _, stable_end, *fields),)),) = response.topics
    error = for_code(error_code)
    if error is not NoError:
        raise error(source)
    aborted = fields[1] if response.API_VERSION >= _FETCH_WITH_REPLICA else fields[-2]
    return _Fetched(bytes(fields[-1] or b""), list(aborted or ()), stable_end)


def _extent(batches: RawBatches, offset: int, end: int) -> range:
    """The offsets of the batch at hand, from `offset` on. Nothing in it can be trusted, so its neighbour is asked."""
    first = max(offset, base_offset(batches.current))
    stops = (batches.following_offset(), stated_end(batches.current), end)
    if not offset <= first < end:
        first = offset
    return range(first, next((stop for stop in stops if stop is not None and first < stop <= end), first + 1))
