"""What operators and accidents do to a deployment's group, topics and Redis, by plain clients."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import CommitFailedError
from aiokafka.protocol.admin import DeleteGroupsRequest
from redis.asyncio import Redis

from .deployment import Deployment, Sent


def send_to(gate: Deployment, topic: str, records: Sequence[Sent]) -> None:
    """Produce into any topic, by its whole name."""

    async def act() -> None:
        async with AIOKafkaProducer(bootstrap_servers=gate.bootstrap) as producer:
            for each in records:
                await producer.send_and_wait(topic, each.value, key=each.key, headers=list(each.headers))

    asyncio.run(act())


def group_of(gate: Deployment, topic: str) -> str:
    """The group that reads an input."""
    suffix = {"tickets": "", "proposals": ".propose", "dispatch": ".effects"}
    return f"{gate.name}{suffix[topic]}"


def commit(gate: Deployment, offsets: Mapping[int, int], *, of: str = "tickets") -> None:
    """Set a group's offsets, as a reset does. Waits until no member is left that would refuse it."""

    async def act() -> None:
        places = {TopicPartition(gate.topic(of), number): to for number, to in offsets.items()}
        consumer = AIOKafkaConsumer(
            bootstrap_servers=gate.bootstrap, group_id=group_of(gate, of), enable_auto_commit=False
        )
        async with consumer, asyncio.timeout(30):
            consumer.assign(list(places))
            while True:
                try:
                    await consumer.commit(places)
                    return
                except CommitFailedError:
                    await asyncio.sleep(0.2)

    asyncio.run(act())


def committed_offset(gate: Deployment, partition: int, *, of: str = "tickets") -> int | None:
    """A group's offset of one partition of its input."""

    async def act() -> int | None:
        source = TopicPartition(gate.topic(of), partition)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=gate.bootstrap, group_id=group_of(gate, of), enable_auto_commit=False
        )
        async with consumer:
            found: int | None = await consumer.committed(source)
            return found

    return asyncio.run(act())


def delete_group(gate: Deployment) -> None:
    """As Kafka does by itself to a group without members after offsets.retention.minutes."""

    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=gate.bootstrap)
        await client.start()
        try:
            coordinator = await client.find_coordinator(gate.name)
            response: Any = await client._send_request(DeleteGroupsRequest([gate.name]), coordinator)
            ((_, error_code),) = response.results
            assert error_code == 0, error_code
        finally:
            await client.close()

    asyncio.run(act())


def remove_inputs(gate: Deployment, before: Mapping[int, int]) -> None:
    """As retention does: what lies below an offset of each partition of tickets is gone."""
    remove(gate, "tickets", before)


def remove(gate: Deployment, topic: str, before: Mapping[int, int]) -> None:
    """What lies below an offset of each partition of a topic is gone."""

    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=gate.bootstrap)
        await client.start()
        try:
            await client.delete_records(
                {
                    TopicPartition(gate.topic(topic), number): RecordsToDelete(before_offset=to)
                    for number, to in before.items()
                }
            )
        finally:
            await client.close()

    asyncio.run(act())


def set_topic_config(gate: Deployment, topic: str, **config: str) -> None:
    """Set what a topic's own configuration is; dots are written as underscores."""

    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=gate.bootstrap)
        await client.start()
        try:
            resource = ConfigResource(
                ConfigResourceType.TOPIC,
                gate.topic(topic),
                {name.replace("_", "."): value for name, value in config.items()},
            )
            await client.alter_configs([resource])
        finally:
            await client.close()

    asyncio.run(act())


def redis_call(url: str, *command: str) -> object:
    """One command of Redis."""

    async def act() -> object:
        redis = Redis.from_url(url, protocol=2, decode_responses=True)
        try:
            return await redis.execute_command(*command)
        finally:
            await redis.aclose()

    return asyncio.run(act())


def keys_of(gate: Deployment, kind: str) -> list[str]:
    """The names of one kind in the deployment's namespace, such as `claim`."""
    found = redis_call(gate.redis_url, "KEYS", f"ticketgate:{gate.name}:{kind}:*")
    assert isinstance(found, list)
    return sorted(found)
