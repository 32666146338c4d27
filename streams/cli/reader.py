"""Read a part of a topic, committed records only, without a group: nobody's position moves.

Promise: without `follow` the reading ends, at the latest where the committed records ended when it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import assert_never

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from ticketgate.streams.broker import Unreachable, admin_client
from ticketgate.streams.cli import CommandError
from ticketgate.streams.cli.span import Beginning, Count, End, From, Moment, Offsets, Until
from ticketgate.streams.cli.topics import explain, require_topic

# How soon it is seen that nothing but transaction markers is left.
_POLL_MS = 200
# Records that are known to be there come in milliseconds; a broker that restarts is back in seconds.
_PATIENCE_S = 20.0
CLOSE_TIMEOUT_S = 3.0


async def read(
    *, bootstrap: str, topic: str, start: From, until: Until, follow: bool
) -> AsyncGenerator[list[ConsumerRecord], None]:
    """The records in parts, each partition's in order; with `follow` it goes on until `until` has its count.

    Raises `Unreachable`, or `CommandError` for a topic, partition or offset that is not there and for a record that
    cannot be read.
    """
    async with admin_client(bootstrap) as client:
        await require_topic(client, topic)
        (described,) = await client.describe_topics([topic])
    partitions = [TopicPartition(topic, each["partition"]) for each in described["partitions"]]
    try:
        async with _consumer(bootstrap) as consumer:
            starts = await _starts(consumer, partitions, start)
            stops = None if follow else await _stops(consumer, list(starts), until)
            parts = _read(consumer, starts, stops)
            if isinstance(until, Count):
                parts = _at_most(parts, until.records)
            async with aclosing(parts):
                async for records in parts:
                    yield records
    except KafkaError as err:
        raise explain(err, bootstrap) from err


@asynccontextmanager
async def _consumer(bootstrap: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
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


async def _starts(
    consumer: AIOKafkaConsumer, partitions: list[TopicPartition], start: From
) -> dict[TopicPartition, int]:
    match start:
        case Beginning():
            return dict(await consumer.beginning_offsets(partitions))
        case End():
            return dict(await consumer.end_offsets(partitions))
        case Moment():
            return await _at(consumer, partitions, start)
        case Offsets():
            return await _existing(consumer, partitions, start)
        case _:
            assert_never(start)


async def _stops(
    consumer: AIOKafkaConsumer, partitions: list[TopicPartition], until: Until
) -> dict[TopicPartition, int]:
    if isinstance(until, Moment):
        return await _at(consumer, partitions, until)
    # With the consumer's isolation level: the end of what is committed, before any open transaction.
    return dict(await consumer.end_offsets(partitions))


async def _at(
    consumer: AIOKafkaConsumer, partitions: list[TopicPartition], moment: Moment
) -> dict[TopicPartition, int]:
    """The offset of each partition's first record that is not older; its end if all are."""
    ends = await consumer.end_offsets(partitions)
    found = await consumer.offsets_for_times(dict.fromkeys(partitions, moment.milliseconds))
    return {
        each: ends[each] if (at := found.get(each)) is None or at.offset < 0 else min(at.offset, ends[each])
        for each in partitions
    }


async def _existing(
    consumer: AIOKafkaConsumer, partitions: list[TopicPartition], given: Offsets
) -> dict[TopicPartition, int]:
    by_number = {each.partition: each for each in partitions}
    if missing := [number for number in given.by_partition if number not in by_number]:
        raise CommandError(
            f"--from: {partitions[0].topic} has no partition {missing[0]}, but {len(partitions)}, from 0 on"
        )
    starts = {by_number[number]: offset for number, offset in given.by_partition.items()}
    firsts = await consumer.beginning_offsets(list(starts))
    ends = await consumer.end_offsets(list(starts))
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
        for partition, records in (await _next(consumer, positions)).items():
            yield [each for each in records if stops is None or each.offset < stops[partition]]
        # Markers of transactions take offsets too: only the position tells that no record is left.
        now = {each: await consumer.position(each) for each in positions}
        if stops is None:
            positions = now
            continue
        if now != positions:
            moved_at = clock()
        elif clock() - moved_at > _PATIENCE_S:
            where = ", ".join(str(each.partition) for each in positions)
            raise Unreachable(
                "TICKETGATE_KAFKA",
                f"the broker gives no more records of partition {where}, though there are some",
                "see what ails it, and try again",
            )
        consumer.pause(*(each for each in now if now[each] >= stops[each]))
        positions = {each: offset for each, offset in now.items() if offset < stops[each]}


async def _at_most(
    parts: AsyncGenerator[list[ConsumerRecord], None], count: int
) -> AsyncGenerator[list[ConsumerRecord], None]:
    """The first `count` records of `parts`."""
    async with aclosing(parts):
        while count > 0 and (records := await anext(parts, None)) is not None:
            yield records[:count]
            count -= len(records)


async def _next(
    consumer: AIOKafkaConsumer, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, list[ConsumerRecord]]:
    try:
        return dict(await consumer.getmany(timeout_ms=_POLL_MS))
    except UnicodeDecodeError as err:
        # aiokafka has lost what it had fetched with it; which of the next ones it was, it does not say.
        where = ", ".join(f"{each.partition}:{offset}" for each, offset in sorted(positions.items()))
        raise CommandError(
            f"a record at or after {where} has a header whose name is not UTF-8, and the client cannot read it;"
            " read on behind it with --from"
        ) from err
