"""Read whole topics, committed records only, to an end that covers every commit made before it was taken.

Promise: a record whose transaction was committed before `extents` was called is among those that `read` gives.
The end is the high watermark, not the last stable offset: the markers of one transaction reach the group's offsets
and each output in an order of their own, so at a stable end an offset may be committed whose records are not yet
there. Reading waits instead for the transactions that are open, which the broker ends at their time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import Unreachable, admin_client, why_not_reached
from ticketgate.streams.kafka.connection import KafkaConnection, connection_of
from ticketgate.streams.kafka.reading.salvage import Gap, UnreadableBatch, poll
from ticketgate.streams.kafka.topics import missing_topics

Progress = Callable[[str, int, int], None]
"""Called with what is read, how many of its offsets are done, and how many there are."""

POLL_MS = 500
# What the broker knows without waiting comes in milliseconds, from one that restarts in seconds; aiokafka has no limit.
REQUEST_TIMEOUT_S = 30.0
# Beyond the transactions' time limit: the broker looks for those that passed it every 10 s, and may restart meanwhile.
PATIENCE_S = 30.0
CLOSE_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Scanner:
    """Reads topics of one broker. `patience_s` is the longest time without a step forward."""

    connection: KafkaConnection
    patience_s: float
    _committed: AIOKafkaConsumer
    _all: AIOKafkaConsumer

    async def partitions(self, *topics: str) -> tuple[TopicPartition, ...]:
        """The partitions of topics. Raises `ConditionFailed` for one that is missing, and `Unreachable`."""
        async with admin_client(self.connection) as client, broker_errors(self.connection):
            missing = await missing_topics(client, topics)
            if missing:
                raise ConditionFailed(f"no topic {', '.join(missing)}", "run `ticketgate topics create`")
            described = await client.describe_topics(list(topics))
        return tuple(
            sorted(
                TopicPartition(topic["topic"], partition["partition"])
                for topic in described
                for partition in topic["partitions"]
            )
        )

    async def extents(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, range]:
        """From each partition's first offset to one past its last, whether committed yet or not."""
        async with broker_errors(self.connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                firsts = await self._all.beginning_offsets(partitions)
                ends = await self._all.end_offsets(partitions)
        return {each: range(firsts[each], ends[each]) for each in partitions}

    async def offsets_at(
        self, partitions: Sequence[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | None]:
        """Each partition's first offset that is not older, None where all are."""
        async with broker_errors(self.connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                found = await self._all.offsets_for_times(dict.fromkeys(partitions, timestamp_ms))
        return {each: None if at is None else at.offset for each, at in found.items()}

    async def read(
        self, ranges: Mapping[TopicPartition, range], *, unreadable: list[Gap] | None = None
    ) -> AsyncIterator[Sequence[ConsumerRecord]]:
        """The committed records in `ranges`, in parts of one partition each, every partition's in order.

        What retention takes away meanwhile is left out. Raises `Unreachable`, also where nothing moves for as long
        as patience lasts. A batch that nobody can read is passed over and added to `unreadable`; without such a list
        it raises `ConditionFailed`.
        """
        positions = {each: offsets.start for each, offsets in ranges.items() if offsets}
        if not positions:
            return
        consumer, clock = self._committed, asyncio.get_running_loop().time
        consumer.assign(list(positions))
        for each, offset in positions.items():
            consumer.seek(each, offset)
        moved_at = clock()
        while positions:
            async with broker_errors(self.connection):
                polled = await poll(
                    consumer, positions, timeout_ms=POLL_MS, pass_over=partial(_pass_over, unreadable)
                )
            for partition, records in polled.items():
                end = ranges[partition].stop
                within = [record for record in records if record.offset < end]
                if within:
                    yield within
            # Markers of transactions take offsets too: only the position tells that no record is left.
            now = {each: await consumer.position(each) for each in positions}
            if now != positions:
                moved_at = clock()
            elif clock() - moved_at > self.patience_s:
                where = ", ".join(f"{each.topic}:{each.partition}" for each in sorted(positions))
                raise Unreachable(
                    "TICKETGATE_KAFKA",
                    f"nothing more of {where} can be read, though there is more; a transaction may be open",
                    "start a worker, which ends it, or try again later",
                )
            consumer.pause(*(each for each, offset in now.items() if offset >= ranges[each].stop))
            positions = {each: offset for each, offset in now.items() if offset < ranges[each].stop}


def _pass_over(unreadable: list[Gap] | None, batch: UnreadableBatch) -> None:
    if unreadable is None:
        raise ConditionFailed(str(batch), "restore it from a healthy replica") from batch
    unreadable.append(Gap(batch.source, batch.offsets))


async def read_all(
    scanner: Scanner,
    ranges: Mapping[TopicPartition, range],
    *,
    what: str,
    progress: Progress,
    unreadable: list[Gap] | None = None,
) -> AsyncIterator[Sequence[ConsumerRecord]]:
    """As `Scanner.read`, and tells of each part once it was taken: `what` is read."""
    done, total = 0, sum(len(offsets) for offsets in ranges.values())
    async for records in scanner.read(ranges, unreadable=unreadable):
        yield records
        done += len(records)
        progress(what, done, total)


@asynccontextmanager
async def open_scanner(settings: Settings) -> AsyncIterator[Scanner]:
    """A connected scanner. Raises `Unreachable` and `SettingsError`."""
    connection = connection_of(settings)
    committed = _consumer(connection, "read_committed")
    everything = _consumer(connection, "read_uncommitted")
    try:
        async with broker_errors(connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await committed.start()
                await everything.start()
        patience_s = settings.transaction_timeout.total_seconds() + PATIENCE_S
        yield Scanner(connection, patience_s, committed, everything)
    finally:
        for consumer in (committed, everything):
            await close(consumer)


@asynccontextmanager
async def broker_errors(connection: KafkaConnection) -> AsyncIterator[None]:
    """Say of any error of the broker that it cannot be reached, or why it lets nobody in: `Unreachable`,
    `KafkaRefused`."""
    try:
        yield
    except (KafkaError, TimeoutError, OSError) as err:
        raise await why_not_reached(connection, err) from err


async def close(consumer: AIOKafkaConsumer) -> None:
    """Stop a consumer that holds no position, within a bound."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await consumer.stop()
    except (KafkaError, TimeoutError, OSError):
        pass  # nothing is lost with it


def _consumer(connection: KafkaConnection, isolation_level: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **connection.arguments(),
        group_id=None,
        enable_auto_commit=False,
        # Retention may pass a position while it is read; what is gone is no longer there to account for.
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
    )
