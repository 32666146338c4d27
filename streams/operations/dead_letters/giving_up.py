"""What `ticketgate dead-letter skip` does: look at a batch, and order its lane to pass over it.

Promise: nothing is ordered for a batch that can be read. The lane looks once more before it passes (passing.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import get_args

from aiokafka import AIOKafkaConsumer, TopicPartition
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.skips import Skips
from ticketgate.store.lane_state.underway import UnderWays
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import KafkaConnection, connection_of
from ticketgate.streams.kafka.errors import require_topic
from ticketgate.streams.kafka.reading.salvage import UnreadableBatch, fetch, salvage
from ticketgate.streams.kafka.reading.scanning import REQUEST_TIMEOUT_S, broker_errors, close
from ticketgate.streams.lane.opening.care import FATAL_TO_UNPACK, Care
from ticketgate.streams.operations.command_redis import open_redis


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A batch that cannot be read, from the coordinate asked for on."""

    first: Coordinate
    offsets: range
    reason: str


async def give_up(text: str, settings: Settings, *, is_ordered: bool) -> Unreadable:
    """Look at the batch that holds a coordinate, and with `is_ordered` order its lane to pass over it.

    Raises `CommandError` for a batch that can be read or is not there, and `Unreachable`.
    """
    try:
        at = Coordinate.parse(text)
    except ValueError as err:
        raise CommandError(str(err)) from err
    inputs = [role_terms(role, settings).source for role in get_args(Role)]
    if at.topic not in inputs:
        raise CommandError(f"{at} is on none of the topics that workers read: {', '.join(inputs)}")
    connection = connection_of(settings)
    async with open_redis(settings) as redis:
        care = Care(0, await UnderWays(redis, Keys(settings.namespace)).left(at.topic, at.partition))
    async with admin_client(connection) as client:
        await require_topic(client, at.topic)
        (described,) = await client.describe_topics([at.topic])
    if at.partition not in {each["partition"] for each in described["partitions"]}:
        raise CommandError(f"{at.topic} has no partition {at.partition}")
    found = await _look(at, connection, care)
    if is_ordered:
        async with open_redis(settings) as redis:
            await Skips(redis, Keys(settings.namespace)).order(at)
    return Unreadable(at, found.offsets, found.reason)


async def _look(at: Coordinate, connection: KafkaConnection, care: Care) -> UnreadableBatch:
    source = TopicPartition(at.topic, at.partition)
    consumer = AIOKafkaConsumer(**connection.arguments(), group_id=None, isolation_level="read_committed")
    try:
        async with broker_errors(connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await consumer.start()
                first = (await consumer.beginning_offsets([source]))[source]
                end = (await consumer.end_offsets([source]))[source]
                if not first <= at.offset < end:
                    raise CommandError(
                        f"{at.topic}:{at.partition} has offsets {first} to {end - 1}, not {at.offset}"
                    )
                if care.is_fatal_to_unpack(at.offset):
                    # To see whether it can be read would be to die of it as well.
                    return (await fetch(consumer, source, at.offset)).next_as_unreadable(FATAL_TO_UNPACK)
                try:
                    await salvage(consumer, source, at.offset)
                except UnreadableBatch as found:
                    return found
    finally:
        await close(consumer)
    raise CommandError(f"{at} can be read, and what can be read is never passed over")
