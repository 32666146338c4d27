"""The workers' group from outside: its committed offsets, whether it has members, and setting its offsets.

Promise: offsets are set only while the group has no members; should one join meanwhile, the broker refuses them.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import CommitFailedError, KafkaError
from ticketgate.agents.plural import counted
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.internals import coordinator_of
from ticketgate.streams.kafka.reading.scanning import REQUEST_TIMEOUT_S, broker_errors, close

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
    connection: KafkaConnection, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int | None]:
    """Each partition's committed offset, None where there is none. Raises `Unreachable`."""
    found = await committed_with_metadata(connection, group, partitions)
    return {each: found[each][0] if each in found else None for each in partitions}


async def committed_with_metadata(
    connection: KafkaConnection, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[int, str]]:
    """The committed offset of each partition that has one, and the metadata that came with it. Raises `Unreachable`."""
    consumer = _consumer(connection, group)
    try:
        async with broker_errors(connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await consumer.start()
                coordinator: Any = coordinator_of(consumer)
                found = await coordinator.fetch_committed_offsets(list(partitions))
                return {each: (told.offset, told.metadata) for each, told in found.items()}
    finally:
        await close(consumer)


async def require_no_members(connection: KafkaConnection, group: str) -> None:
    """Raises `GroupHasMembers` or `Unreachable`."""
    members = len(await _members(connection, group))
    if members:
        raise GroupHasMembers(group, members)


async def tellings_of_members(connection: KafkaConnection, group: str) -> list[bytes]:
    """What each member of the group told it of itself beside the topics that it wants. Raises `Unreachable`."""
    tellings: list[bytes] = []
    for member in await _members(connection, group):
        try:
            # Empty while the group is between two generations.
            tellings += [ConsumerProtocol.METADATA.decode(member).user_data] if member else []
        except (ValueError, struct.error):
            continue  # no consumer, or one that speaks otherwise
    return tellings


async def _members(connection: KafkaConnection, group: str) -> list[bytes]:
    """Each member's metadata."""
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
    # The last fields of a member, in every version of the response, are its metadata and its assignment.
    return [member[-2] for each in described.groups for member in each[5]]


async def set_offsets(
    connection: KafkaConnection, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = ""
) -> None:
    """Commit offsets for a group without members. Raises `GroupHasMembers` or `Unreachable`."""
    consumer = _consumer(connection, group)
    try:
        async with broker_errors(connection):
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                await consumer.start()
                # Assigned, not subscribed: a commit without membership, which a group with members refuses.
                consumer.assign(list(offsets))
                try:
                    await consumer.commit({each: (offset, metadata) for each, offset in offsets.items()})
                except CommitFailedError as err:
                    raise GroupHasMembers(group, None) from err
    finally:
        await close(consumer)


def _consumer(connection: KafkaConnection, group: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **connection.arguments(), group_id=group, enable_auto_commit=False, auto_offset_reset="none"
    )
