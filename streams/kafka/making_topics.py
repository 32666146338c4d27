"""`topics create`: what the settings name, made if it is missing, and usable when this returns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.errors import explain
from ticketgate.streams.kafka.topics import CreatedTopic, create_topics, topic_specs

# A broker knows of a new topic in milliseconds; one that is slower is waited for by whoever uses the topic.
USABLE_TIMEOUT_S = 10.0


async def make_topics(settings: Settings) -> tuple[CreatedTopic, ...]:
    """Make what is missing; those that are there stay as they are. Raises `Unreachable`, `CommandError` and
    `SettingsError`."""
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
