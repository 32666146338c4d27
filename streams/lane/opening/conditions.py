"""What must hold before a lane may open: a broker that fences, topics that are there, a Redis that remembers.

Promise: `check` returns only where the guarantee in the settings can be kept, on the server of Redis that the namespace
stands on; otherwise it raises `ConditionFailed` with the setting and the remedy, or what a lane is to do.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import logging
import time

from aiokafka.admin import AIOKafkaAdminClient
from redis.asyncio import Redis
from ticketgate.store.conditions import bind_identity, check_server, identity_of
from ticketgate.store.keys import Keys
from ticketgate.store.sentinel import SentinelUrl
from ticketgate.streams.config.role_terms import RoleTerms, role_terms
from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client, describe, describe_broker
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.verification import check_verification
from ticketgate.streams.lane.opening.handover import HandOver
from ticketgate.streams.lane.opening.topic_faults import TORN, broker_fault, topic_faults, vouching_faults

log = logging.getLogger(__name__)

# All lanes open together after a rebalance; what held a moment ago is not asked again for each of them.
MEMORY_S = 5.0


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
        if fault := broker_fault(broker, settings):
            raise fault
        if settings.guarantee == "exactly_once" and broker.may_tear_transactions and not self._has_warned:
            self._has_warned = True
            log.warning(TORN)
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
        for fault in await topic_faults(client, self._settings, self._terms):
            raise fault

    async def _check_vouching(self, client: AIOKafkaAdminClient) -> None:
        """Whether the outputs could give back what Redis loses. Without that, at least once can still be kept."""
        for fault in await vouching_faults(client, self._settings, self._terms):
            if self._settings.guarantee == "exactly_once":
                raise fault
            if fault.what not in self._warned_of:
                self._warned_of.add(fault.what)
                log.warning("%s", fault)


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
