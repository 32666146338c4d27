"""Read on where aiokafka cannot: fetch a partition's bytes and unpack them tolerantly.

aiokafka raises out of `getmany` for a header name that is not UTF-8 and for a batch that it cannot unpack, drops what
it had unpacked before, and would raise so for ever. Here the good records come out, those in the same batch too, and a
batch that truly cannot be read is named by its coordinates.

Promise: what comes out is what a read_committed consumer would have been given, in order and without a gap, up to
`next_offset`; only header names differ (rawbatches.py). See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.internals import client_of, restart_unpacking
from ticketgate.streams.kafka.reading.rawbatches import RawBatches, base_offset, stated_count, stated_end
from ticketgate.streams.kafka.unpacking import UnpacksTooLarge

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

    Only this partition's lane stops. `data` are the batch's bytes, `reason` says what is wrong with it, `count` how
    many records it says that it has, if it says so. is_for_good: no replica has a better one.
    """

    def __init__(
        self,
        source: TopicPartition,
        offsets: range,
        *,
        data: bytes,
        reason: str,
        count: int | None = None,
        is_for_good: bool = False,
    ) -> None:
        first, last = f"{source.topic}:{source.partition}:{offsets.start}", offsets.stop - 1
        mend = "mend what the reason names" if is_for_good else "restore it from a healthy replica"
        super().__init__(
            f"the batch at {first} to {last} cannot be read: {reason}",
            Handling(
                Action.REFUSE,
                "unreadable_batch",
                f"{mend}, or give it up: `ticketgate dead-letter skip {first}`",
            ),
        )
        self.source, self.offsets, self.data, self.reason, self.count = source, offsets, data, reason, count
        self.is_for_good = is_for_good


def is_about_bytes(error: Exception) -> bool:
    """Whether `getmany` raised while it unpacked what it had fetched.

    What the broker or the group says comes as a KafkaError; unpacking raises these three of them, and whatever
    UTF-8 and the codecs raise.
    """
    if isinstance(error, (CorruptRecordException, UnsupportedCodecError, RecordTooLargeError)):
        return True
    return not isinstance(error, (KafkaError, ConsumerStoppedError, TimeoutError, MemoryError))


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
    fetched = await fetch(consumer, source, offset)
    records: list[ConsumerRecord] = []
    while fetched.has_next():
        try:
            records += fetched.unpack_next()
        except UnreadableBatch:
            if fetched.next_offset == offset:
                raise
            break  # what came before it is taken first; the next fetch begins with it
    return Salvaged(tuple(records), fetched.next_offset)


class Fetched:
    """What one fetch of a partition from `offset` gave, to be unpacked batch by batch.

    data: whole batches; a last one that is cut short counts only where it is the first too. aborted: transactions, by
    producer and first offset. end: where the committed records end.
    """

    def __init__(
        self,
        source: TopicPartition,
        offset: int,
        *,
        data: bytes = b"",
        aborted: Sequence[tuple[int, int]] = (),
        end: int = 0,
    ) -> None:
        self._source = source
        self._data = data
        self._end = end
        self._batches = RawBatches(data)
        self._is_cut_short = bool(data) and not self._batches.has_next()
        # One for all batches: it knows which transactions were aborted so far.
        self._unpacked = PartitionRecords(
            source, self._batches, list(aborted), offset, None, None, True, READ_COMMITTED
        )

    @property
    def next_offset(self) -> int:
        """Where what is not unpacked yet begins."""
        found: int = self._unpacked.next_fetch_offset
        return found

    def has_next(self) -> bool:
        """Whether there is a batch to be unpacked, or to be found unreadable."""
        return self._is_cut_short or self._batches.has_next()

    def next_as_unreadable(self, reason: str) -> UnreadableBatch:
        """The next batch, by its head alone, as one that is not unpacked for `reason`."""
        if self._is_cut_short:
            offsets = range(self.next_offset, max(self.next_offset + 1, self._end))
            cut_short = "its length goes beyond its bytes"
            return UnreadableBatch(self._source, offsets, data=self._data, reason=cut_short)
        following = self._batches.following_offset(after=1)
        return self._unreadable(self._batches.head(), following, reason, is_for_good=True)

    def unpack_next(self) -> list[ConsumerRecord]:
        """The committed records of the next batch. Raises `UnreadableBatch`."""
        offset = self.next_offset
        if self._is_cut_short:
            raise self.next_as_unreadable("")
        self._batches.may_give = 1
        restart_unpacking(self._unpacked)
        records: list[ConsumerRecord] = []
        try:
            # One by one, as what was unpacked before a broken record counts.
            for record in self._unpacked:
                records.append(record)  # noqa: PERF402
        except MemoryError:
            raise  # it says nothing about the batch
        except Exception as err:
            if self.next_offset == offset:
                raise self._unreadable(
                    self._batches.current,
                    self._batches.following_offset(),
                    str(err),
                    is_for_good=isinstance(err, UnpacksTooLarge),
                ) from err
        finally:
            self._batches.may_give = None
        return records

    def _unreadable(
        self, data: bytes, following: int | None, reason: str, *, is_for_good: bool = False
    ) -> UnreadableBatch:
        """Nothing in a batch can be trusted, so its neighbour is asked too for its offsets, from the position on."""
        offset, end = self.next_offset, self._end
        first = max(offset, base_offset(data))
        stops = (following, stated_end(data), end)
        if not offset <= first < end:
            first = offset
        stop = next((stop for stop in stops if stop is not None and first < stop <= end), first + 1)
        return UnreadableBatch(
            self._source,
            range(first, stop),
            data=data,
            reason=reason,
            count=stated_count(data),
            is_for_good=is_for_good,
        )


async def fetch(consumer: AIOKafkaConsumer, source: TopicPartition, offset: int) -> Fetched:
    """Fetch as aiokafka's fetcher does, for one partition; it has no public way to ask for bytes. Raises aiokafka's
    errors or TimeoutError."""
    client = client_of(consumer)
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
    return Fetched(source, offset, data=bytes(fields[-1] or b""), aborted=aborted or (), end=stable_end)
