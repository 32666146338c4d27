"""`ticketgate topics create`: what the settings name, made if it is missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import InvalidReplicationFactorError, KafkaConnectionError, KafkaError
from ticketgate.streams.broker import admin_client, unreachable
from ticketgate.streams.cli import CommandError
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries
from ticketgate.streams.kafka_connection import KafkaConnection, connection_of
from ticketgate.streams.kafka_refusal import find_refusal
from ticketgate.streams.settings import Settings
from ticketgate.streams.topics import CreatedTopic, create_topics, missing_topics, topic_specs

# A broker knows of a new topic in milliseconds; one that is slower is waited for by whoever uses the topic.
USABLE_TIMEOUT_S = 10.0


@click.group("topics")
def command() -> None:
    """The topics that the settings name."""


@command.command("create")
@json_flag
@settings_flags("kafka", "partitions", "replication")
def create(as_json: bool, settings: Settings) -> None:
    """Make the topics that the settings name, with their retention.

    Those that are there stay as they are, and the table says where they differ from the settings.
    """
    quiet_libraries()
    created = asyncio.run(_create(settings))
    if as_json:
        print_json(
            [
                {"topic": each.name, "created": each.is_new, "differences": each.differences}
                for each in created
            ]
        )
        return
    print_table(
        ("topic", "", "differs from the settings"),
        [
            (each.name, "created" if each.is_new else "is there", "; ".join(each.differences))
            for each in created
        ],
    )


async def _create(settings: Settings) -> tuple[CreatedTopic, ...]:
    connection = connection_of(settings)
    async with admin_client(connection) as client:
        try:
            created = await create_topics(client, topic_specs(settings))
            await _until_usable(client, [each.name for each in created if each.is_new])
        except KafkaError as err:
            raise await explain(err, connection) from err
        return created


async def _until_usable(client: AIOKafkaAdminClient, names: Sequence[str]) -> None:
    """Wait until the broker tells its clients of the topics: it says "created" a moment before that, and a
    `produce` that follows at once would not find them."""
    end = time.monotonic() + USABLE_TIMEOUT_S
    while names and time.monotonic() < end:
        described = await client.describe_topics(list(names))
        if all(topic["partitions"] and not _is_pending(topic) for topic in described):
            return
        await asyncio.sleep(0.05)


def _is_pending(topic: Mapping[str, Any]) -> bool:
    return bool(topic["error_code"]) or any(each["error_code"] for each in topic["partitions"])


async def explain(err: KafkaError, connection: KafkaConnection) -> Exception:
    """What a person can do about a broker's error."""
    if err.retriable or isinstance(err, KafkaConnectionError):
        return await find_refusal(connection) or unreachable(connection, err)
    if isinstance(err, InvalidReplicationFactorError):
        return CommandError(
            f"TICKETGATE_REPLICATION: {' '.join(str(err).split())}; set it to at most the number of brokers"
        )
    return CommandError(f"the broker at {connection} refused: {' '.join(str(err).split())}")


async def require_topic(client: AIOKafkaAdminClient, name: str) -> None:
    """Raises `CommandError` if the broker has no such topic."""
    if await missing_topics(client, [name]):
        raise CommandError(
            f"the broker has no topic {name!r}; `ticketgate topics create` makes those that the settings name"
        )
