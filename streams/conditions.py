"""What must hold before a lane may open: a broker that fences, topics that are there, a Redis that remembers.

Promise: `check` returns only where the guarantee in the settings can be kept; otherwise it raises `ConditionFailed`
with the setting and the remedy. Source: DESIGN section 4, conditions.
"""

from __future__ import annotations

import asyncio
import logging
import time

from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed, bind_identity, check_server, identity_of
from ticketgate.store.keys import Keys
from ticketgate.streams.broker import admin_client, describe_broker
from ticketgate.streams.settings import Settings, show_duration
from ticketgate.streams.topics import missing_topics, topic_config

log = logging.getLogger(__name__)

# All lanes open together after a rebalance; what held a moment ago is not asked again for each of them.
MEMORY_S = 5.0


class Conditions:
    """The conditions of one deployment. Shared by the lanes of a process."""

    def __init__(self, settings: Settings, redis: Redis) -> None:
        self._settings = settings
        self._redis = redis
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
            await self._check_broker()
            await self._check_topics()
            self._held_until = time.monotonic() + MEMORY_S

    async def _check_broker(self) -> None:
        settings = self._settings
        broker = await describe_broker(settings.kafka)
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
        identity = identity_of(cluster=broker.cluster, group=settings.group, topics=[settings.topic_tickets])
        await bind_identity(self._redis, Keys(settings.namespace), identity)

    async def _check_topics(self) -> None:
        settings = self._settings
        outputs = (settings.topic_dispatch, settings.topic_review, settings.topic_dead_letter)
        async with admin_client(settings.kafka) as client:
            missing = await missing_topics(client, (settings.topic_tickets, *outputs))
            if missing:
                raise ConditionFailed(f"no topic {', '.join(missing)}", "run `ticketgate topics create`")
            tickets = await topic_config(client, settings.topic_tickets)
            limits = [await topic_config(client, name) for name in outputs]
        if "compact" in tickets.get("cleanup.policy", "delete"):
            raise ConditionFailed(
                f"topic {settings.topic_tickets} is compacted, which drops tickets unread",
                "set its cleanup.policy to delete",
            )
        self._check_retention(tickets)
        largest = min(
            (int(limit["max.message.bytes"]) for limit in limits if "max.message.bytes" in limit),
            default=None,
        )
        if largest is not None and settings.max_record_bytes > largest:
            raise ConditionFailed(
                f"TICKETGATE_MAX_RECORD_BYTES is {settings.max_record_bytes}, and an output topic takes {largest}",
                f"set it to at most {largest}, or raise max.message.bytes of the output topics",
            )

    def _check_retention(self, tickets: dict[str, str]) -> None:
        settings = self._settings
        if settings.guarantee != "exactly_once" or "retention.ms" not in tickets:
            return
        kept_ms = int(tickets["retention.ms"])
        if kept_ms < 0:
            raise ConditionFailed(
                f"topic {settings.topic_tickets} keeps records for ever, and claims do not live that long",
                f"set its retention.ms, for example to {round(settings.tickets_retention.total_seconds() * 1000)}",
            )
        needed_ms = (
            kept_ms + int(tickets.get("segment.ms", 0)) + settings.duplicate_horizon.total_seconds() * 1000
        )
        if settings.claim_ttl.total_seconds() * 1000 < needed_ms:
            raise ConditionFailed(
                f"TICKETGATE_CLAIM_TTL is {show_duration(settings.claim_ttl)}, and a ticket can be read or sent again"
                f" for {needed_ms / 86_400_000:.1f} days (retention.ms + segment.ms of {settings.topic_tickets}"
                " + TICKETGATE_DUPLICATE_HORIZON)",
                "raise it, or shorten what it must outlive",
            )
