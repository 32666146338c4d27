"""The workers' group from outside: its committed offsets, whether it has members, and setting its offsets.

Promise: offsets are set only while the group has no members; should one join meanwhile, the broker refuses them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, KafkaError
from ticketgate.agents.plural import counted
from ticketgate.streams.broker import admin_client
from ticketgate.streams.kafka_connection import KafkaConnection
from ticketgate.streams.scanning import REQUEST_TIMEOUT_S, broker_errors, close

# A broker that just started does not know its groups yet.
RETRY_S = 0.5


class GroupHasMembers(Exception):
    """Workers are at work, and would not see their offsets change. Nothing was changed."""

    def __init__(self, group: str, members: int | None) -> None:
        super().__init__(
            f"group {group!r} has {'members' if members is None else counted(members, 'member')}; stop the workers"
            " (a killed one counts until TICKETGATE_SESSION_TIMEOUT is over), then try again"
        )
        self.group, self.members = group, members


async def committed_offsets(
    connection: KafkaConnection, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int | None]:
    """Each partition's committed offset, None where there is none. Raises `Unreachable`."""
    consumer = _consumer(connection, group)
    try:
        async with broker_errors(connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await consumer.start()
                return {each: await consumer.committed(each) for each in partitions}
    finally:
        await close(consumer)


async def require_no_members(connection: KafkaConnection, group: str) -> None:
    """Raises `GroupHasMembers` or `Unreachable`."""
    async with admin_client(connection) as client, broker_errors(connection):
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            while True:
                try:
                    (response,) = await client.describe_consumer_groups([group])
                    break
                except KafkaError as err:
                    if not err.retriable:
                        raise
                await asyncio.sleep(RETRY_S)
    described: Any = response
    members = sum(len(each[5]) for each in described.groups)
    if members:
        raise GroupHasMembers(group, members)


async def set_offsets(connection: KafkaConnection, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group without members. Raises `GroupHasMembers` or `Unreachable`."""
    consumer = _consumer(connection, group)
    try:
        async with broker_errors(connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await consumer.start()
                # Assigned, not subscribed: a commit without membership, which a group with members refuses.
                consumer.assign(list(offsets))
                try:
                    await consumer.commit(dict(offsets))
                except CommitFailedError as err:
                    raise GroupHasMembers(group, None) from err
    finally:
        await close(consumer)


def _consumer(connection: KafkaConnection, group: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **connection.arguments(), group_id=group, enable_auto_commit=False, auto_offset_reset="none"
    )
