"""A broker's errors as what a person can do about them, and topics that must be there."""

from __future__ import annotations

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import InvalidReplicationFactorError, KafkaConnectionError, KafkaError
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import why_not_reached
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.topics import missing_topics


async def explain(err: KafkaError, connection: KafkaConnection) -> Exception:
    """What a person can do about a broker's error."""
    if err.retriable or isinstance(err, KafkaConnectionError):
        return await why_not_reached(connection, err)
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
