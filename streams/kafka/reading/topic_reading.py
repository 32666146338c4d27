"""Read topics, or a part of one, committed records only, without a group: nobody's position moves.

Promise: without `follow` the reading ends, at the latest where the committed records ended when it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias, assert_never

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import Unreachable, admin_client
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.errors import explain, require_topic
from ticketgate.streams.kafka.reading.salvage import UnreadableBatch, poll
from ticketgate.streams.kafka.reading.span import Beginning, Count, End, From, Moment, Offsets, Until

# How soon it is seen that nothing but transaction markers is left.
_POLL_MS = 200
# How long the broker holds back the answer that there is nothing yet.
_FETCH_WAIT_MS = 100
_GLANCE_S = 0.01
# Records that are known to be there come in milliseconds; a broker that restarts is back in seconds.
_PATIENCE_S = 20.0
CLOSE_TIMEOUT_S = 3.0

PassOver: TypeAlias = Callable[[UnreadableBatch], None]
"""Told of a batch that nobody can read; it is passed over unless this raises."""


def refuse(batch: UnreadableBatch) -> None:
    """Pass over nothing. Raises `CommandError`."""
    raise CommandError(f"{batch}; restore it from a healthy replica") from batch


async def read(
    *,
    connection: KafkaConnection,
    topic: str,
    start: From,
    until: Until,
    follow: bool,
    pass_over: PassOver,
) -> AsyncGenerator[list[ConsumerRecord], None]:
    """The records in parts, each partition's in order; with `follow` it goes on until `until` has its count.

    A batch that nobody can read is told to `pass_over`, and is passed over unless that raises. Raises `Unreachable`,
    or `CommandError` for a topic, partition or offset that is not there.
    """
    async with _at_ends(connection, [topic]) as (consumer, ends):
        starts = await _starts(consumer, start, ends)
        stops = await _at(consumer, until, ends) if isinstance(until, Moment) else ends
        parts = _read(consumer, starts, None if follow else stops, pass_over)
        if isinstance(until, Count):
            parts = _at_most(parts, until.records)
        async with aclosing(parts):
            async for records in parts:
                yield records


async def read_whole(
    connection: KafkaConnection, topics: Sequence[str], *, pass_over: PassOver = refuse
) -> AsyncGenerator[ConsumerRecord, None]:
    """Each record of the topics from the beginning to the present end, each partition's in order.

    As `read`; unless `pass_over` is given, a batch that nobody can read raises `CommandError`.
    """
    async with _at_ends(connection, topics) as (consumer, ends):
        parts = _read(consumer, await _starts(consumer, Beginning(), ends), ends, pass_over)
        async with aclosing(parts):
            async for records in parts:
                for record in records:
                    yield record


@asynccontextmanager
async def _at_ends(
    connection: KafkaConnection, topics: Sequence[str]
) -> AsyncIterator[tuple[AIOKafkaConsumer, dict[TopicPartition, int]]]:
    """A consumer, and where the committed records of each partition end."""
    async with admin_client(connection) as client:
        for topic in topics:
            await require_topic(client, topic)
        described = await client.describe_topics(list(topics))
    partitions = [
        TopicPartition(topic["topic"], each["partition"])
        for topic in described
        for each in topic["partitions"]
    ]
    try:
        async with _consumer(connection) as consumer:
            yield consumer, await _ends(consumer, partitions)
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
            return {each: max(offset, await told_end(consumer, each)) for each, offset in asked.items()}
    except TimeoutError as err:
        raise _silent(partitions) from err


async def told_end(consumer: AIOKafkaConsumer, partition: TopicPartition) -> int:
    """Where the committed records of an assigned partition end, as the first answer to a fetch told; negative from a
    broker that does not tell. Waits for that answer."""
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
    pass_over: PassOver,
) -> AsyncGenerator[list[ConsumerRecord], None]:
    """From `starts` on, up to `stops` or for ever."""
    positions = {each: offset for each, offset in starts.items() if stops is None or offset < stops[each]}
    if not positions:
        return
    consumer.assign(list(positions))
    for each, offset in positions.items():
        consumer.seek(each, offset)
    clock = asyncio.get_running_loop().time
    moved_at = clock()
    while positions:
        try:
            polled = await poll(consumer, positions, timeout_ms=_POLL_MS, pass_over=pass_over)
        except TimeoutError as err:
            raise _silent(positions) from err
        for partition, records in polled.items():
            yield [each for each in records if stops is None or each.offset < stops[partition]]
        # Markers of transactions take offsets too: only the position tells that no record is left.
        now = {each: await consumer.position(each) for each in positions}
        if stops is None:
            positions = now
            continue
        if now != positions:
            moved_at = clock()
        elif clock() - moved_at > _PATIENCE_S:
            raise _silent(positions)
        consumer.pause(*(each for each in now if now[each] >= stops[each]))
        positions = {each: offset for each, offset in now.items() if offset < stops[each]}


def _silent(partitions: Iterable[TopicPartition]) -> Unreachable:
    where = ", ".join(f"{each.topic}:{each.partition}" for each in sorted(partitions))
    return Unreachable(
        "TICKETGATE_KAFKA",
        f"the broker does not answer for {where}",
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
