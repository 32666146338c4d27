"""One role's place in its group: a consumer, and a lane for each partition that the group assigns to it.

Promise: `run` stays in the group until it is cancelled; a consumer that cannot start, or is no longer let in, is
made anew, and /readyz says meanwhile that no broker answers, or why it refuses. Source: DESIGN section 4.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from redis.asyncio import Redis
from redis.exceptions import RedisError
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.underway import UnderWays
from ticketgate.streams.assignment import Assignment
from ticketgate.streams.batch import BatchHung, BatchTaker
from ticketgate.streams.broker import Unreachable
from ticketgate.streams.claims_store import ClaimsStore, OtherStore, StoreId, assignor_of
from ticketgate.streams.conditions import Conditions
from ticketgate.streams.diagnosis import Diagnosis
from ticketgate.streams.floor import Floor
from ticketgate.streams.handover import HandOver
from ticketgate.streams.kafka_connection import KafkaConnection, connection_of
from ticketgate.streams.kafka_refusal import find_refusal
from ticketgate.streams.lane import REFUSAL_RETRY_S, Lane
from ticketgate.streams.membership import Membership
from ticketgate.streams.opening import Opening
from ticketgate.streams.pace import pace_for
from ticketgate.streams.passing import PassingOver
from ticketgate.streams.readiness import Readiness
from ticketgate.streams.recovery import Action, LaneFault, handling
from ticketgate.streams.roles import RoleTerms
from ticketgate.streams.settings import Settings, SettingsError
from ticketgate.streams.telemetry import Telemetry
from ticketgate.streams.topics import TopicMissing, require_topic
from ticketgate.streams.transaction import OffsetCommit, Output, Transactions, transactional_id
from ticketgate.streams.watching import watch_conditions

log = logging.getLogger(__name__)

# The group's other members wait this long for a worker to hand its lanes over (assignment.py needs 8 s at most).
REBALANCE_TIMEOUT_MS = 30_000
# aiokafka asks every 5 minutes, and a partition that was added is not served before.
METADATA_MAX_AGE_MS = 60_000
# A consumer that could not start tries again after this.
START_RETRY_S = 1.0
# How often it is looked whether a consumer has lost its group's coordinator because the broker refuses it.
WATCH_S = 5.0
# A broker that is gone makes aiokafka's consumer try for ever to leave its group.
CONSUMER_STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneParts:
    """What all lanes of a process share."""

    settings: Settings
    redis: Redis
    keys: Keys
    under_ways: UnderWays
    floor: Floor
    durability: Durability
    hand_over: HandOver
    store: ClaimsStore
    passing: PassingOver
    telemetry: Telemetry
    readiness: Readiness
    on_hang: Callable[[TopicPartition, BatchHung], Awaitable[None]]


class Consuming:
    """The lanes of one role. `taker` takes their batches."""

    def __init__(self, terms: RoleTerms, *, taker: BatchTaker, parts: LaneParts) -> None:
        self.terms = terms
        self._kafka = connection_of(parts.settings)
        self._taker = taker
        self._parts = parts
        self._conditions = Conditions(parts.settings, terms, hand_over=parts.hand_over)
        self._consumer: AIOKafkaConsumer | None = None
        self._assignment: Assignment | None = None
        self._excluded: OtherStore | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._part = "kafka" if terms.role == "decide" else f"kafka {terms.source}"
        parts.readiness.wait(self._part, "starting")

    @property
    def lanes(self) -> Collection[Lane]:
        """The lanes at work."""
        return self._assignment.lanes if self._assignment is not None else ()

    async def drain(self, grace_s: float) -> None:
        """Let the batches under way finish within `grace_s` seconds; no lane starts afterwards."""
        if self._assignment is not None:
            await self._assignment.drain(grace_s)

    async def run(self) -> None:
        """Join the group, and stay until cancelled."""
        while True:
            try:
                await self._stay()
            except (KafkaError, OSError, SettingsError) as err:
                await self._wait_after(err)
            except (LaneFault, RedisError, Unreachable) as err:
                await self._wait_outside(err)

    async def watch_conditions(self) -> None:
        """Look again and again whether the lanes may go on, until cancelled."""
        await watch_conditions(
            self._conditions,
            lambda: self.lanes,
            readiness=self._parts.readiness,
            part="conditions" if self.terms.role == "decide" else f"conditions {self.terms.source}",
            interval_s=self._parts.settings.condition_interval.total_seconds(),
        )

    async def _stay(self) -> None:
        """Returns never. Raises aiokafka's errors and OSError before a lane began, and `SettingsError`."""
        consumer = self._new_consumer(await self._prove_store())
        try:
            await consumer.start()
            # It would join with nothing to serve, and be content.
            await require_topic(consumer._client, self.terms.source)
            self._consumer = consumer
            self._positions = {}
            self._assignment = Assignment(
                consumer,
                new_lane=self._new_lane,
                telemetry=self._parts.telemetry,
                readiness=self._parts.readiness,
                topic=self.terms.source,
                on_assigned=lambda: self._parts.readiness.work(self._part),
            )
            self._parts.readiness.wait(self._part, "joining the group")
            consumer.subscribe([self.terms.source], listener=self._assignment)
            await self._watch(Membership(consumer))
        finally:
            await self.drain(0)
            await _stop_consumer(consumer)

    async def _prove_store(self) -> StoreId:
        """That this worker uses the claims of the group's others, before it joins them. Raises what `prove` raises."""
        parts = self._parts
        async with parts.hand_over.client() as redis:
            store = await parts.store.prove(parts.settings, redis, self.terms)
        self._excluded = None
        return store

    def _exclude(self, theirs: StoreId) -> None:
        """The group's leader gave this worker nothing, since it uses another claims store."""
        self._excluded = OtherStore(self.terms.group, self._parts.store.current, theirs)

    async def _wait_outside(self, err: Exception) -> None:
        how = handling(err)
        remedy = f"; {how.remedy}" if how.remedy else ""
        self._parts.readiness.wait(self._part, f"{how.cause}: {err}{remedy}")
        log.warning("not joining group %s (%s): %s%s", self.terms.group, how.cause, err, remedy)
        await asyncio.sleep(REFUSAL_RETRY_S if how.action is Action.REFUSE else START_RETRY_S)

    async def _watch(self, membership: Membership) -> None:
        """Raise what keeps a consumer out that was let in before: of itself it would try for ever, and an idle lane
        would not notice."""
        while True:
            await asyncio.sleep(WATCH_S)
            if self._excluded is not None:
                raise self._excluded
            if not membership.has_coordinator and (refusal := await find_refusal(self._kafka)):
                raise refusal

    async def _wait_after(self, err: Exception) -> None:
        refusal = err if isinstance(err, (SettingsError, TopicMissing)) else await find_refusal(self._kafka)
        if refusal is None:
            self._parts.readiness.wait(self._part, f"no broker answers at {self._kafka}")
            log.warning("cannot consume from %s: %r; trying again", self._kafka, err)
            await asyncio.sleep(START_RETRY_S)
            return
        how = handling(refusal)
        self._parts.readiness.wait(self._part, f"{how.cause}: {refusal}; {how.remedy}")
        log.error("cannot consume (%s): %s; %s", how.cause, refusal, how.remedy)
        await asyncio.sleep(REFUSAL_RETRY_S)

    def _new_consumer(self, store: StoreId) -> AIOKafkaConsumer:
        settings = self._parts.settings
        session_ms = round(settings.session_timeout.total_seconds() * 1000)
        return AIOKafkaConsumer(
            **self._kafka.arguments(),
            group_id=self.terms.group,
            client_id=f"ticketgate-{settings.namespace}",
            auto_offset_reset="none",
            enable_auto_commit=False,
            isolation_level="read_committed",
            # Not the sticky one: aiokafka's gives a partition to two members after one of them was frozen.
            partition_assignment_strategy=(assignor_of(store, self._exclude),),
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=max(100, session_ms // 5),
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            # How late a partition that was added is served.
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            max_poll_interval_ms=self.terms.poll_interval_ms,
        )

    def _new_lane(self, source: TopicPartition) -> Lane:
        parts, consumer = self._parts, self._require_consumer()
        membership = Membership(consumer)
        return Lane(
            source,
            consumer=consumer,
            opening=Opening(
                consumer=consumer,
                membership=membership,
                redis=parts.redis,
                keys=parts.keys,
                under_ways=parts.under_ways,
                batch_size=self.terms.batch_size,
                durability=parts.durability,
                check_conditions=self._conditions.check,
                terms=self.terms,
            ),
            output=self._new_output(source, consumer),
            passing=parts.passing,
            under_ways=parts.under_ways,
            floor=parts.floor,
            taker=self._taker,
            telemetry=parts.telemetry,
            pace=pace_for(self.terms.batch_size, hang_s=self.terms.hang_s),
            positions=self._positions,
            readiness=parts.readiness,
            is_member=membership.is_member,
            diagnose=Diagnosis(self._kafka, parts.redis).of,
            on_hang=parts.on_hang,
        )

    def _new_output(self, source: TopicPartition, consumer: AIOKafkaConsumer) -> Output:
        settings = self._parts.settings
        common: Mapping[str, Any] = {
            "new_producer": partial(_new_producer, self._kafka),
            "max_request_size": settings.max_record_bytes * 2,
            "telling": lambda: self._parts.store.telling,
        }
        commit_timeout_s = settings.commit_timeout.total_seconds()
        if settings.guarantee == "at_least_once":
            return OffsetCommit(source=source, consumer=consumer, commit_timeout_s=commit_timeout_s, **common)
        return Transactions(
            source=source,
            group=self.terms.group,
            transactional_id=transactional_id(settings.namespace, source),
            transaction_timeout_s=settings.transaction_timeout.total_seconds(),
            commit_timeout_s=commit_timeout_s,
            **common,
        )

    def _require_consumer(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise RuntimeError("no consumer: a lane was asked for before the group was joined")
        return self._consumer


async def _stop_consumer(consumer: AIOKafkaConsumer) -> None:
    try:
        async with asyncio.timeout(CONSUMER_STOP_TIMEOUT_S):
            await consumer.stop()
    except (KafkaError, OSError, TimeoutError) as err:
        log.debug("the consumer did not stop cleanly: %r", err)


def _new_producer(connection: KafkaConnection, **options: Any) -> AIOKafkaProducer:
    """One more producer, over a connection made anew: a renewed certificate counts from its lane's reopening on."""
    return AIOKafkaProducer(**connection.arguments(), **options)
