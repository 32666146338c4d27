"""The topics: their names from the settings, their retention, and `topics create`.

Promise: creating is idempotent, and an existing topic is never changed, only described where it differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    KafkaError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    for_code,
)
from ticketgate.streams.config.settings import Settings


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as the settings want it; `segment` bounds how long a record outlives `retention`, which is None where
    the last record of each key is kept for ever."""

    name: str
    partitions: int
    replication: int
    retention: timedelta | None
    segment: timedelta

    @property
    def config(self) -> dict[str, str]:
        """Kafka's topic configuration."""
        if self.retention is None:
            return {
                "cleanup.policy": "compact",
                "retention.ms": "-1",
                "segment.ms": _milliseconds(self.segment),
            }
        return {
            # Compaction would drop tickets that were never read.
            "cleanup.policy": "delete",
            "retention.ms": _milliseconds(self.retention),
            "segment.ms": _milliseconds(self.segment),
        }


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What became of one topic: made, or there already, with what differs from the settings."""

    name: str
    is_new: bool
    differences: tuple[str, ...] = ()


def topic_specs(settings: Settings) -> tuple[TopicSpec, ...]:
    """The topics that a deployment with these settings has, `tickets` first."""
    inputs = (settings.topic_tickets, settings.topic_proposals, settings.topic_settlements)
    outputs = (
        settings.topic_dispatch,
        settings.topic_review,
        settings.topic_repairs,
        settings.topic_receipts,
        settings.topic_settled,
        settings.topic_dead_letter,
    )
    common = (settings.partitions, settings.replication)
    return (
        *(TopicSpec(name, *common, settings.tickets_retention, settings.tickets_segment) for name in inputs),
        *(TopicSpec(name, *common, settings.outputs_retention, settings.tickets_segment) for name in outputs),
        policies_spec(settings),
    )


def policies_spec(settings: Settings) -> TopicSpec:
    """The topic that keeps each policy under its hash: in one partition, so that what was in force has an order."""
    return TopicSpec(settings.topic_policies, 1, settings.replication, None, settings.tickets_segment)


async def create_topics(client: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> tuple[CreatedTopic, ...]:
    """Make what is missing. Raises aiokafka's errors, by name of the first topic that failed."""
    response: Any = await client.create_topics(
        [NewTopic(spec.name, spec.partitions, spec.replication, topic_configs=spec.config) for spec in specs]
    )
    created: list[CreatedTopic] = []
    outcomes = {name: (code, message) for name, code, message, *_ in response.topic_errors}
    for spec in specs:
        code, message = outcomes[spec.name]
        error = for_code(code)
        if error is TopicAlreadyExistsError:
            created.append(
                CreatedTopic(spec.name, is_new=False, differences=await _differences(client, spec))
            )
        elif code:
            raise error(f"topic {spec.name}: {message or error.__name__}")
        else:
            created.append(CreatedTopic(spec.name, is_new=True))
    return tuple(created)


async def missing_topics(client: AIOKafkaAdminClient, names: Sequence[str]) -> tuple[str, ...]:
    """The topics among `names` that the broker does not have."""
    found = set(await client.list_topics())
    return tuple(name for name in names if name not in found)


class TopicMissing(UnknownTopicOrPartitionError):  # type: ignore[misc]  # aiokafka has no types
    """The broker has no topic of that name, and nobody makes it by asking for it."""

    def __str__(self) -> str:
        return f"the broker has no topic {', '.join(self.args)}"


async def require_topic(client: Any, name: str) -> None:
    """Raises `TopicMissing` where a connected AIOKafkaClient's broker has no such topic, and aiokafka's errors."""
    cluster = await client.fetch_all_metadata()
    if name not in cluster.topics():
        raise TopicMissing(name)


async def topic_config(client: AIOKafkaAdminClient, name: str) -> dict[str, str]:
    """A topic's configuration as the broker has it; empty from a broker that does not tell."""
    try:
        responses: list[Any] = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    except KafkaError:
        return {}
    entries = [entry for response in responses for resource in response.resources for entry in resource[4]]
    return {entry[0]: entry[1] for entry in entries}


async def partition_count(client: AIOKafkaAdminClient, name: str) -> int:
    """How many partitions a topic has that is there. Raises aiokafka's errors."""
    (described,) = await client.describe_topics([name])
    return len(described["partitions"])


async def _differences(client: AIOKafkaAdminClient, spec: TopicSpec) -> tuple[str, ...]:
    config = await topic_config(client, spec.name)
    found = {"partitions": str(await partition_count(client, spec.name)), **config}
    wanted = {"partitions": str(spec.partitions), **spec.config}
    return tuple(
        f"{name} is {found[name]}, not {value}"
        for name, value in wanted.items()
        if found.get(name, value) != value
    )


def _milliseconds(duration: timedelta) -> str:
    return str(round(duration.total_seconds() * 1000))
