"""aiokafka's private names, each behind a function here and nowhere else.

Relies on: the versions that pyproject.toml allows, which end before the one that could move them, and on
tests/streams/kafka/test_internals.py, which asks the installed one on a real broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.consumer.fetcher import PartitionRecords

ApiVersions = Mapping[int, tuple[int, int]]
"""By API key, the least and the greatest version of a request that a broker takes."""


def coordinator_of(consumer: AIOKafkaConsumer) -> Any:
    """What speaks for a started consumer with its group's coordinator."""
    return consumer._coordinator


def client_of(consumer: AIOKafkaConsumer) -> Any:
    """What a started consumer sends its requests with."""
    return consumer._client


def told_versions(client: AIOKafkaAdminClient) -> tuple[ApiVersions, ...]:
    """What each connected broker told of the requests that it takes."""
    return tuple(each._versions for each in client._client._conns.values() if each._versions)


def sender_task(producer: AIOKafkaProducer) -> asyncio.Task[None] | None:
    """The task that sends a producer's batches; it outlives a `stop` that was given up."""
    task: asyncio.Task[None] | None = producer._sender.sender_task
    return task


async def wait_for_metadata(consumer: AIOKafkaConsumer, topic: str) -> None:
    """Until a started consumer's client knows the partitions of a topic."""
    await consumer._client._wait_on_metadata(topic)


def client_of_admin(admin: AIOKafkaAdminClient) -> Any:
    """What a connected admin client sends its requests with."""
    return admin._client


def heartbeat_of(coordinator: Any) -> Callable[[], Awaitable[bool]]:
    """How aiokafka's own task asks the group whether it knows this member."""
    ask: Callable[[], Awaitable[bool]] = coordinator._do_heartbeat
    return ask


def replace_heartbeat(coordinator: Any, ask: Callable[[], Awaitable[bool]]) -> None:
    """Have aiokafka's own task ask the group by this function."""
    coordinator._do_heartbeat = ask


def transaction_waiter(producer: AIOKafkaProducer) -> asyncio.Future[Any] | None:
    """What a transaction under way waits for, None if there is none, or the producer has no transactions."""
    transactions: Any = producer._txn_manager
    return None if transactions is None else transactions._transaction_waiter


def restart_unpacking(unpacked: PartitionRecords) -> None:
    """Have what was fetched of a partition unpacked anew from where it stands."""
    unpacked._records_iterator = unpacked._unpack_records()


def placing(producer: AIOKafkaProducer, topic: str) -> Callable[[bytes | None], int]:
    """The partition of `topic` where a started producer's `send` would put a record, by its key. The topic's metadata
    must be known."""
    cluster: Any = producer._metadata
    everywhere, available = (
        list(cluster.partitions_for_topic(topic)),
        list(cluster.available_partitions_for_topic(topic)),
    )
    partitioner: Any = producer._partitioner
    return lambda key: partitioner(key, everywhere, available)
