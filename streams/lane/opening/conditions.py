"""What must hold before a lane may open: a broker that fences, topics that are there, a Redis that remembers.

Promise: `check` returns only where the guarantee in the settings can be kept, on the server of Redis that the namespace
stands on; otherwise it raises `ConditionFailed` with the setting and the remedy, or what a lane is to do.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed, bind_identity, check_server, identity_of
from ticketgate.store.keys import Keys
from ticketgate.store.sentinel import SentinelUrl
from ticketgate.streams.config.role_terms import RoleTerms, role_terms
from ticketgate.streams.config.setting_kinds import Role, show_duration
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client, describe, describe_broker
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.topics import missing_topics, topic_config
from ticketgate.streams.kafka.verification import check_verification
from ticketgate.streams.lane.opening.handover import HandOver
from ticketgate.streams.lane.opening.vouching import find_cut, why_not

log = logging.getLogger(__name__)

# All lanes open together after a rebalance; what held a moment ago is not asked again for each of them.
MEMORY_S = 5.0
LARGEST_BATCH = ("max.message.bytes", "segment.bytes")


class Conditions:
    """The conditions of one role. Shared by its lanes in a process."""

    def __init__(self, settings: Settings, terms: RoleTerms, *, hand_over: HandOver) -> None:
        self._settings = settings
        self._terms = terms
        self._hand_over = hand_over
        self._lock = asyncio.Lock()
        self._held_until = 0.0
        self._has_warned = False
        self._warned_of: set[str] = set()

    async def check(self) -> None:
        """Raises `ConditionFailed`, `LaneFault`, `Unreachable`, or errors of redis-py and aiokafka."""
        async with self._lock:
            if time.monotonic() >= self._held_until:
                await self._check_all()
            # Each time: between two lanes' openings Redis may have become another.
            await self._hand_over.ensure(self._terms.role)

    async def _check_all(self) -> None:
        settings = self._settings
        async with self._hand_over.client() as redis, admin_client(connection_of(settings)) as client:
            await check_server(redis, fsync=settings.redis_fsync, replicas=settings.redis_replicas)
            await self._check_broker(client, redis)
            await self._check_topics(client)
            await self._check_vouching(client)
        await self._warn_of_sentinels()
        self._held_until = time.monotonic() + min(MEMORY_S, settings.condition_interval.total_seconds() / 2)

    async def _check_broker(self, client: AIOKafkaAdminClient, redis: Redis) -> None:
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
        if settings.guarantee == "exactly_once":
            await check_verification(client)
        identity = namespace_identity(settings, self._terms.role, cluster=broker.cluster)
        await bind_identity(redis, Keys(settings.namespace), identity)

    async def _warn_of_sentinels(self) -> None:
        """Which loss is only detected: a replica without a claim may be promoted before the claim comes to it."""
        settings = self._settings
        behind = SentinelUrl.parse(settings.redis.get_secret_value())
        if behind is None or "sentinels" in self._warned_of:
            return
        known = await behind.known_replicas(timeout=settings.redis_timeout)
        if known > settings.redis_replicas:
            self._warned_of.add("sentinels")
            log.warning(
                "Sentinel may promote any of %d replicas, and TICKETGATE_REDIS_REPLICAS is %d: claims that a failover"
                " loses are detected, and lanes refuse until they are rebuilt, but are not prevented; set it to %d, and"
                " a failover loses none",
                known,
                settings.redis_replicas,
                known,
            )

    async def _check_topics(self, client: AIOKafkaAdminClient) -> None:
        settings, source, outputs = self._settings, self._terms.source, self._terms.outputs
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
        if settings.guarantee == "exactly_once":
            check_retention(self._terms, config)
        # A batch of records has to fit into a file as well.
        largest = min(
            (int(limit[name]) for limit in limits for name in LARGEST_BATCH if name in limit), default=None
        )
        if largest is not None and settings.max_record_bytes > largest:
            raise ConditionFailed(
                f"TICKETGATE_MAX_RECORD_BYTES is {settings.max_record_bytes}, and an output topic takes {largest}",
                f"set it to at most {largest}, or raise max.message.bytes (or segment.bytes) of the output topics",
            )

    async def _check_vouching(self, client: AIOKafkaAdminClient) -> None:
        """Whether the outputs could give back what Redis loses. Without that, at least once can still be kept."""
        settings, terms = self._settings, self._terms
        lives = min(terms.kept.lives, settings.outputs_retention)
        try:
            for name in terms.vouching:
                config = await topic_config(client, name)
                found = why_not(name, config, lives=lives, kept_what=terms.kept.what)
                if found is not None:
                    raise found
            cut = await find_cut(connection_of(settings), terms.vouching, lives=lives)
            if cut is not None:
                raise ConditionFailed(
                    f"the first records of {cut.topic}:{cut.partition} are gone, and were younger than"
                    f" {terms.kept.what} live: those that Redis loses could not be restored from it",
                    f"find out who deleted them; once the remaining are older than {show_duration(lives)} it heals,"
                    " or take a new TICKETGATE_GROUP and TICKETGATE_NAMESPACE",
                )
        except ConditionFailed as err:
            if settings.guarantee == "exactly_once":
                raise
            if err.what not in self._warned_of:
                self._warned_of.add(err.what)
                log.warning("%s", err)


def check_retention(terms: RoleTerms, config: Mapping[str, str]) -> None:
    """What keeps a record from taking effect twice must outlive every record that could. config: the source's.

    Raises `ConditionFailed`."""
    if "retention.ms" not in config:
        return
    source, kept, retention_ms = terms.source, terms.kept, int(config["retention.ms"])
    if retention_ms < 0:
        raise ConditionFailed(
            f"topic {source} keeps records for ever, and {kept.what} do not live that long",
            f"set its retention.ms, for example to {round(terms.retention.total_seconds() * 1000)}",
        )
    needed_ms = retention_ms + int(config.get("segment.ms", 0)) + kept.sent_again.total_seconds() * 1000
    if kept.lives.total_seconds() * 1000 < needed_ms:
        sent_again = " + TICKETGATE_DUPLICATE_HORIZON" if kept.sent_again else ""
        raise ConditionFailed(
            f"{kept.what} live {show_duration(kept.lives)}, and a record of {source} can come again for"
            f" {needed_ms / 86_400_000:.1f} days (the topic's retention.ms + segment.ms{sent_again})",
            f"raise {kept.lives_by}, which they live by, or shorten what they must outlive",
        )


async def require_namespace(settings: Settings, redis: Redis, role: Role) -> None:
    """Bind the namespace to what a role is at work in, for who acts outside its lanes.

    Raises `ConditionFailed` where it is bound to something else, such as another cluster, and `Unreachable`.
    """
    broker = await describe_broker(connection_of(settings))
    identity = namespace_identity(settings, role, cluster=broker.cluster)
    await bind_identity(redis, Keys(settings.namespace), identity)


def namespace_identity(settings: Settings, role: Role, *, cluster: str) -> dict[str, str]:
    """What the namespace is bound to once a role is at work in it."""
    identity = identity_of(cluster=cluster, group=settings.group, topics=[settings.topic_tickets])
    if role != "decide":
        identity[f"topic of {role}"] = role_terms(role, settings).source
    return identity
