"""Read a part of a topic, committed records only, without a group: nobody's position moves.

Promise: without `follow` the reading ends, at the latest where the committed records ended when it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import assert_never

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from ticketgate.streams.broker import Unreachable, admin_client
from ticketgate.streams.cli import CommandError
from ticketgate.streams.cli.span import Beginning, Count, End, From, Moment, Offsets, Until
from ticketgate.streams.cli.topics import explain, require_topic
from ticketgate.streams.kafka_connection import KafkaConnection

# How soon it is seen that nothing but transaction markers is left.
_POLL_MS = 200
# How long the broker holds back the answer that there is nothing yet.
_FETCH_WAIT_MS = 100
_GLANCE_S = 0.01
# Records that are known to be there come in milliseconds; a broker that restarts is back in seconds.
_PATIENCE_S = 20.0
CLOSE_TIMEOUT_S = 3.0


async def read(
    *, connection: KafkaConnection, topic: str, start: From, until: Until, follow: bool
) -> AsyncGenerator[list[ConsumerRecord], None]:
    """The records in parts, each partition's in order; with `follow` it goes on until `until` has its count.

    Raises `Unreachable`, or `CommandError` for a topic, partition or offset that is not there and for a record that
    cannot be read.
    """
    async with admin_client(connection) as client:
        await require_topic(client, topic)
        (described,) = await client.describe_topics([topic])
    partitions = [TopicPartition(topic, each["partition"]) for each in described["partitions"]]
    try:
        async with _consumer(connection) as consumer:
            ends = await _ends(consumer, partitions)
            starts = await _starts(consumer, start, ends)
            stops = await _at(consumer, until, ends) if isinstance(until, Moment) else ends
            parts = _read(consumer, starts, None if follow else stops)
            if isinstance(until, Count):
                parts = _at_most(parts, until.records)
            async with aclosing(parts):
                async for records in parts:
                    yield records
    except KafkaError as err:
        raise await explain(err, connection) from err


@asynccontextmanager
async def _consumer(connection: KafkaConnection) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        **connection.arguments(),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        fetch_max_wait_ms=_FETCH_WAIT_MS,
    )
    try:
        await consumer.start()
        # A consumer stopped before its task first ran raises that task's CancelledError (aiokafka 0.14).
        await asyncio.sleep(0)
        yield consumer
    finally:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await consumer.stop()
        except TimeoutError:
            # Nothing is lost: it holds no position.
            pass


async def _ends(consumer: AIOKafkaConsumer, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Where each partition's committed records end, before any open transaction.

    Fetches tell: Tansu's answer to a plain question for the last offset counts the last batch as one record.
    """
    asked = await consumer.end_offsets(partitions)
    consumer.assign(partitions)
    for each, offset in asked.items():
        consumer.seek(each, offset)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            # Negative from a broker that does not tell.
            return {each: max(offset, await _told_end(consumer, each)) for each, offset in asked.items()}
    except TimeoutError as err:
        raise _silent(partitions) from err


async def _told_end(consumer: AIOKafkaConsumer, partition: TopicPartition) -> int:
    """The end that the first answer to a fetch told."""
    while (offset := consumer.last_stable_offset(partition)) is None:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(_GLANCE_S)
    return int(offset)


async def _starts(
    consumer: AIOKafkaConsumer, start: From, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    match start:
        case Beginning():
            return dict(await consumer.beginning_offsets(list(ends)))
        case End():
            return dict(ends)
        case Moment():
            return await _at(consumer, start, ends)
        case Offsets():
            return await _existing(consumer, start, ends)
        case _:
            assert_never(start)


async def _at(
    consumer: AIOKafkaConsumer, moment: Moment, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The offset of each partition's first record that is not older; its end if all are."""
    found = await consumer.offsets_for_times(dict.fromkeys(ends, moment.milliseconds))
    return {
        # Tansu says that there is none by an offset without a time.
        each: end if (at := found.get(each)) is None or at.timestamp < 0 else min(at.offset, end)
        for each, end in ends.items()
    }


async def _existing(
    consumer: AIOKafkaConsumer, given: Offsets, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    by_number = {each.partition: each for each in ends}
    if missing := [number for number in given.by_partition if number not in by_number]:
        raise CommandError(f"--from: the topic has no partition {missing[0]}, but {len(ends)}, from 0 on")
    starts = {by_number[number]: offset for number, offset in given.by_partition.items()}
    firsts = await consumer.beginning_offsets(list(starts))
    for each, offset in starts.items():
        if not firsts[each] <= offset <= ends[each]:
            raise CommandError(
                f"--from: partition {each.partition} has offsets {firsts[each]} to {ends[each]}, not {offset}"
            )
    return starts


async def _read(
    consumer: AIOKafkaConsumer,
    starts: Mapping[TopicPartition, int],
    stops: Mapping[TopicPartition, int] | None,
) -> AsyncGenerator[list[ConsumerRecord], None]:
    """From `starts` on, up to `stops` or for ever.

    A record that the client cannot read stops its partition; the others are read to their end before that is raised.
    """
    positions = {each: offset for each, offset in starts.items() if stops is None or offset < stops[each]}
    if not positions:
        return
    consumer.assign(list(positions))
    for each, offset in positions.items():
        consumer.seek(each, offset)
    polling = _Polling(consumer)
    clock = asyncio.get_running_loop().time
    moved_at = clock()
    while positions and (stops is not None or not polling.unreadable):
        for partition, records in (await polling.next(positions)).items():
            yield [each for each in records if stops is None or each.offset < stops[partition]]
        # Markers of transactions take offsets too: only the position tells that no record is left.
        now = {each: await consumer.position(each) for each in positions if each not in polling.unreadable}
        if stops is None:
            positions = now
            continue
        if now != positions:
            moved_at = clock()
        elif clock() - moved_at > _PATIENCE_S:
            raise _silent(positions)
        consumer.pause(*(each for each in now if now[each] >= stops[each]))
        positions = {each: offset for each, offset in now.items() if offset < stops[each]}
    if polling.unreadable:
        where = ", ".join(f"{each.partition}:{offset}" for each, offset in sorted(polling.unreadable.items()))
        raise CommandError(
            f"{next(iter(starts)).topic}: the record at {where} has a header whose name is not UTF-8, and the client"
            " cannot read it; read on behind it with --from PARTITION:OFFSET"
        )


class _Polling:
    """Takes from the client what it has fetched. `unreadable`: partitions stopped by a record that it cannot read."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self.unreadable: dict[TopicPartition, int] = {}

    async def next(
        self, positions: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Some records of the partitions, which stand at `positions`; none after a while without any."""
        try:
            return dict(await self._consumer.getmany(timeout_ms=_POLL_MS))
        except UnicodeDecodeError:
            # aiokafka loses what it had fetched of all partitions with it, and does not say which record it was.
            for each, offset in positions.items():
                self._consumer.seek(each, offset)
            return await self._up_to_the_unreadable(positions)

    async def _up_to_the_unreadable(
        self, positions: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Record by record, each partition alone, until one cannot be read: its partition is stopped before it."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {each: [] for each in positions}
        has_more = True
        while has_more:
            has_more = False
            for each in positions:
                try:
                    polled = await self._consumer.getmany(each, timeout_ms=_POLL_MS, max_records=1)
                except UnicodeDecodeError:
                    self.unreadable[each] = await self._consumer.position(each)
                    self._consumer.pause(each)
                    return found
                found[each].extend(polled.get(each, []))
                has_more = has_more or bool(polled)
        return found


def _silent(partitions: Iterable[TopicPartition]) -> Unreachable:
    where = ", ".join(str(number) for number in sorted(each.partition for each in partitions))
    return Unreachable(
        "TICKETGATE_KAFKA",
        f"the broker does not answer for partition {where}",
        "see what ails it, and try again",
    )


async def _at_most(
    parts: AsyncGenerator[list[ConsumerRecord], None], count: int
) -> AsyncGenerator[list[ConsumerRecord], None]:
    """The first `count` records of `parts`."""
    async with aclosing(parts):
        while count > 0 and (records := await anext(parts, None)) is not None:
            yield records[:count]
            count -= len(records)
