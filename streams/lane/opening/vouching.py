"""Whether outputs can vouch for what Redis holds: out of them a rebuild restores claims, attempts and effects.

Promise: where `why_not` finds nothing, every record that was written within a claim's lifetime is still in the output,
so a Redis that loses claims can have them back. Kafka may be told otherwise at any time: by compaction, by a shorter
retention, by a limit of bytes, or by a person who deletes records.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from aiokafka import AIOKafkaConsumer, TopicPartition
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.setting_kinds import show_duration
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.internals import wait_for_metadata
from ticketgate.streams.kafka.reading.scanning import REQUEST_TIMEOUT_S, Scanner, broker_errors, close


def why_not(
    topic: str, config: Mapping[str, str], *, lives: timedelta, kept_what: str
) -> ConditionFailed | None:
    """What in a topic's configuration keeps it from vouching for `kept_what`, which live for `lives`; None if nothing
    does. What a broker does not tell is not held against it."""
    if "compact" in config.get("cleanup.policy", "delete"):
        return ConditionFailed(
            f"topic {topic} is compacted, and {kept_what} that Redis loses could not be restored from it",
            "set its cleanup.policy to delete",
        )
    lives_ms = round(lives.total_seconds() * 1000)
    # How long a segment stays open is not counted on: one that is full is closed early.
    kept_ms = int(config.get("retention.ms", -1))
    if 0 <= kept_ms < lives_ms:
        return ConditionFailed(
            f"topic {topic} keeps records {show_duration(timedelta(milliseconds=kept_ms))}, and {kept_what} live"
            f" {show_duration(lives)}: those that Redis loses could not be restored from it",
            f"raise its retention.ms to at least {lives_ms}",
        )
    if int(config.get("retention.bytes", -1)) >= 0:
        return ConditionFailed(
            f"topic {topic} has retention.bytes {config['retention.bytes']}, so it may drop records before the"
            f" {kept_what} that they vouch for are over",
            "set its retention.bytes to -1, and bound it by retention.ms",
        )
    return None


async def cut_away(
    scanner: Scanner,
    places: Sequence[TopicPartition],
    *,
    lives: timedelta,
    kept_what: str,
    is_young: bool,
) -> list[str]:
    """A line for each partition that lost records which may have been younger than `lives`. is_young: whether there
    were such, so that a partition which holds nothing at all has lost them. Raises `Unreachable`."""
    extents = await scanner.extents(places)
    moved = [each for each in places if extents[each].start > 0]
    first = await scanner.offsets_at(moved, 0)
    young = await scanner.offsets_at(moved, young_since_ms(lives))
    return [
        f"the first records of {each.topic}:{each.partition} are gone, and were younger than {kept_what} live"
        for each in moved
        if (first[each] == young[each] if first[each] is not None else is_young)
    ]


def young_since_ms(lives: timedelta) -> int:
    """From when on, in ms since 1970, what was written has not outlived `lives` yet."""
    return max(0, round((time.time() - lives.total_seconds()) * 1000))


async def find_cut(
    connection: KafkaConnection, topics: Collection[str], *, lives: timedelta
) -> TopicPartition | None:
    """A partition whose first records are gone though they may have been younger than `lives`; None if there is none.

    One that holds no record at all says nothing: it may have been quiet for that long. Raises `Unreachable`.
    """
    async with _consumer(connection) as consumer, broker_errors(connection):
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            places = [
                TopicPartition(topic, number)
                for topic in topics
                for number in sorted(await _partitions(consumer, topic))
            ]
            return next(iter(await cut(consumer, places, lives=lives)), None)


async def cut(
    consumer: AIOKafkaConsumer, places: Collection[TopicPartition], *, lives: timedelta
) -> list[TopicPartition]:
    """The partitions that `find_cut` looks for. Raises aiokafka's errors."""
    firsts = await consumer.beginning_offsets(places)
    moved = sorted(each for each in places if firsts[each] > 0)
    if not moved:
        return []
    # The first record of any time, and not the first offset: that may be a transaction's marker.
    first = await consumer.offsets_for_times(dict.fromkeys(moved, 0))
    young = await consumer.offsets_for_times(dict.fromkeys(moved, young_since_ms(lives)))
    return [each for each in moved if first[each] is not None and first[each] == young[each]]


@asynccontextmanager
async def _consumer(connection: KafkaConnection) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(**connection.arguments(), group_id=None, enable_auto_commit=False)
    try:
        async with broker_errors(connection), asyncio.timeout(REQUEST_TIMEOUT_S):
            await consumer.start()
        yield consumer
    finally:
        await close(consumer)


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> set[int]:
    await wait_for_metadata(consumer, topic)
    return set(consumer.partitions_for_topic(topic) or ())
