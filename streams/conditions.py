"""What must hold before a lane may open: a broker that fences, topics that are there, a Redis that remembers.

Promise: `check` returns only where the guarantee in the settings can be kept; otherwise it raises `ConditionFailed`
with the setting and the remedy. Source: DESIGN section 4, conditions.
"""

from __future__ import annotations

import asyncio
import logging
import time

from aiokafka.admin import AIOKafkaAdminClient
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed, bind_identity, check_server, identity_of
from ticketgate.store.keys import Keys
from ticketgate.streams.broker import admin_client, describe
from ticketgate.streams.kafka_connection import connection_of
from ticketgate.streams.roles import RoleTopics, role_topics
from ticketgate.streams.settings import Role, Settings, ledger_ttl, show_duration
from ticketgate.streams.topics import missing_topics, topic_config

log = logging.getLogger(__name__)

# All lanes open together after a rebalance; what held a moment ago is not asked again for each of them.
MEMORY_S = 5.0


class Conditions:
    """The conditions of one role. Shared by its lanes in a process."""

    def __init__(self, settings: Settings, redis: Redis, topics: RoleTopics) -> None:
        self._settings = settings
        self._redis = redis
        self._topics = topics
        self._lock = asyncio.Lock()
        self._held_until = 0.0
        self._has_warned = False

    async def check(self) -> None:
        """Raises `ConditionFailed`, `Unreachable`, or errors of redis-py and aiokafka."""
        async with self._lock:
            if time.monotonic() < self._held_until:
                return
            settings = self._settings
            await check_server(self._redis, fsync=settings.redis_fsync, replicas=settings.redis_replicas)
            async with admin_client(connection_of(settings)) as client:
                await self._check_broker(client)
                await self._check_topics(client)
            self._held_until = time.monotonic() + MEMORY_S

    async def _check_broker(self, client: AIOKafkaAdminClient) -> None:
        settings = self._settings
        broker = await describe(client)
        if settings.guarantee == "exactly_once" and not broker.is_kafka_4:
            raise ConditionFailed(
                "the broker is not Apache Kafka 4.0 or newer, and exactly_once cannot be kept",
                "use one that is, or set TICKETGATE_GUARANTEE=at_least_once",
            )
        if settings.guarantee == "exactly_once" and broker.may_tear_transactions and not self._has_warned:
            self._has_warned = True
            log.warning(
                "the broker is Apache Kafka 4.3 or newer: unless KAFKA-20734 is mended in it, a transaction may be torn"
                " apart when all replicas of a partition are down at once; use 4.0 to 4.2, or replication 3"
            )
        identity = namespace_identity(settings, self._topics.role, cluster=broker.cluster)
        await bind_identity(self._redis, Keys(settings.namespace), identity)

    async def _check_topics(self, client: AIOKafkaAdminClient) -> None:
        settings, source, outputs = self._settings, self._topics.source, self._topics.outputs
        missing = await missing_topics(client, (source, *outputs))
        if missing:
            raise ConditionFailed(f"no topic {', '.join(missing)}", "run `ticketgate topics create`")
        config = await topic_config(client, source)
        limits = [await topic_config(client, name) for name in outputs]
        if "compact" in config.get("cleanup.policy", "delete"):
            raise ConditionFailed(
                f"topic {source} is compacted, which drops records unread",
                "set its cleanup.policy to delete",
            )
        self._check_retention(config)
        largest = min(
            (int(limit["max.message.bytes"]) for limit in limits if "max.message.bytes" in limit),
            default=None,
        )
        if largest is not None and settings.max_record_bytes > largest:
            raise ConditionFailed(
                f"TICKETGATE_MAX_RECORD_BYTES is {settings.max_record_bytes}, and an output topic takes {largest}",
                f"set it to at most {largest}, or raise max.message.bytes of the output topics",
            )

    def _check_retention(self, config: dict[str, str]) -> None:
        """What keeps a key from taking effect twice must outlive every record that could make it."""
        settings, source = self._settings, self._topics.source
        if settings.guarantee != "exactly_once" or "retention.ms" not in config:
            return
        is_effects = self._topics.role == "effects"
        what = "ledger entries" if is_effects else "claims"
        wanted = settings.outputs_retention if is_effects else settings.tickets_retention
        kept_ms = int(config["retention.ms"])
        if kept_ms < 0:
            raise ConditionFailed(
                f"topic {source} keeps records for ever, and {what} do not live that long",
                f"set its retention.ms, for example to {round(wanted.total_seconds() * 1000)}",
            )
        read_again_ms = kept_ms + int(config.get("segment.ms", 0))
        if is_effects:
            if ledger_ttl(settings).total_seconds() * 1000 < read_again_ms:
                raise ConditionFailed(
                    f"ledger entries live {show_duration(ledger_ttl(settings))}, and topic {source} keeps records for"
                    f" {read_again_ms / 86_400_000:.1f} days (retention.ms + segment.ms)",
                    "raise TICKETGATE_OUTPUTS_RETENTION, which they live by, or shorten the topic's",
                )
            return
        needed_ms = read_again_ms + settings.duplicate_horizon.total_seconds() * 1000
        if settings.claim_ttl.total_seconds() * 1000 < needed_ms:
            raise ConditionFailed(
                f"TICKETGATE_CLAIM_TTL is {show_duration(settings.claim_ttl)}, and a record can be read or sent again"
                f" for {needed_ms / 86_400_000:.1f} days (retention.ms + segment.ms of {source}"
                " + TICKETGATE_DUPLICATE_HORIZON)",
                "raise it, or shorten what it must outlive",
            )


def namespace_identity(settings: Settings, role: Role, *, cluster: str) -> dict[str, str]:
    """What the namespace is bound to once a role is at work in it."""
    identity = identity_of(cluster=cluster, group=settings.group, topics=[settings.topic_tickets])
    if role != "decide":
        identity[f"topic of {role}"] = role_topics(role, settings).source
    return identity
