"""All partitions of a namespace fenced at once: nobody who worked on them before can write or commit any more.

Promise: when `fence_all` returns, every lane that had opened before, of any role and in any process, finds another
token in Redis and another producer epoch at the broker. What it had committed by then is in the committed offsets;
what it had not, never will be. Under at_least_once there is no epoch, and a lane under way may still commit its batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Any, cast, get_args

from aiokafka import AIOKafkaProducer, TopicPartition
from redis.asyncio import Redis
from ticketgate.store.keys import Keys
from ticketgate.store.tokens import take_token
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import KafkaConnection, connection_of
from ticketgate.streams.kafka.reading.scanning import broker_errors
from ticketgate.streams.kafka.topics import missing_topics
from ticketgate.streams.lane.transaction import Transactions, transactional_id

# Each fence is a connection and three round trips, and the broker serves other lanes beside.
MOST_AT_ONCE = 8


async def sources_of(settings: Settings, redis: Redis, keys: Keys) -> dict[Role, list[TopicPartition]]:
    """The partitions that each role of the namespace reads: of all that ever served it, by what it is bound to, and of
    those that the settings name. Raises `Unreachable`, `SettingsError` and redis-py's errors."""
    bound = {name.decode() for name in cast("list[bytes]", await redis.hkeys(keys.identity))}
    roles: list[Role] = [
        role
        for role in get_args(Role)
        if role == "decide" or role in settings.roles or f"topic of {role}" in bound
    ]
    topics: dict[Role, str] = {role: role_terms(role, settings).source for role in roles}
    places = await partitions_of(connection_of(settings), *topics.values())
    return {
        role: [each for each in places if each.topic == topic]
        for role, topic in topics.items()
        if any(each.topic == topic for each in places)
    }


async def partitions_of(connection: KafkaConnection, *topics: str) -> list[TopicPartition]:
    """The partitions of those of the topics that there are. Raises `Unreachable` and `SettingsError`."""
    async with admin_client(connection) as client, broker_errors(connection):
        missing = await missing_topics(client, topics)
        described = await client.describe_topics([each for each in topics if each not in missing])
    return sorted(
        TopicPartition(each["topic"], partition["partition"])
        for each in described
        for partition in each["partitions"]
    )


async def fence_all(
    settings: Settings, redis: Redis, keys: Keys, sources: Collection[TopicPartition]
) -> None:
    """Tokens first, then epochs, as each lane does. Raises aiokafka's errors, TimeoutError and redis-py's errors."""
    tokens = {each: await take_token(redis, keys, each.topic, each.partition) for each in sources}
    if settings.guarantee == "at_least_once":
        return
    slots = asyncio.Semaphore(MOST_AT_ONCE)
    connection = connection_of(settings)

    async def fence(source: TopicPartition) -> None:
        async with slots:
            output = _output(settings, connection, source)
            try:
                await output.open(tokens[source])
            finally:
                await output.close()

    outcomes = await asyncio.gather(*map(fence, sources), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


def _output(settings: Settings, connection: KafkaConnection, source: TopicPartition) -> Transactions:
    return Transactions(
        source=source,
        group="",  # nothing is committed by it
        transactional_id=transactional_id(settings.namespace, source),
        transaction_timeout_s=settings.transaction_timeout.total_seconds(),
        commit_timeout_s=settings.commit_timeout.total_seconds(),
        new_producer=partial(_new_producer, connection),
    )


def _new_producer(connection: KafkaConnection, **options: Any) -> AIOKafkaProducer:
    return AIOKafkaProducer(**connection.arguments(), **options)
