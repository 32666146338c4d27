"""One role's place in its group: a consumer, and a lane for each partition that the group assigns to it.

Promise: `run` stays in the group until it is cancelled. A consumer that cannot start, is not let in, or lost its place
for good is made anew, again and again, and /readyz says meanwhile why and what to do. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NoReturn

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from ticketgate.streams.config.role_terms import RoleTerms
from ticketgate.streams.config.within import within
from ticketgate.streams.kafka.connection import KafkaConnection, connection_of
from ticketgate.streams.kafka.faults import Action
from ticketgate.streams.kafka.internals import client_of
from ticketgate.streams.kafka.topics import require_topic
from ticketgate.streams.lane.assignment import Assignment
from ticketgate.streams.lane.diagnosis import Diagnosis
from ticketgate.streams.lane.group_watch import GroupWatch
from ticketgate.streams.lane.lane import REFUSAL_RETRY_S, STEP_LIMIT_S, Lane
from ticketgate.streams.lane.lane_parts import LaneParts
from ticketgate.streams.lane.leader_watch import watch_leaders
from ticketgate.streams.lane.membership import Membership
from ticketgate.streams.lane.opening.claims_store import OtherStore, StoreId, assignor_of
from ticketgate.streams.lane.opening.conditions import Conditions
from ticketgate.streams.lane.opening.opening import Opening
from ticketgate.streams.lane.outside import Outside, find_reason, told
from ticketgate.streams.lane.recovery import handling, may_hide_refusal
from ticketgate.streams.lane.taking.batch import BatchTaker
from ticketgate.streams.lane.taking.pace import pace_for
from ticketgate.streams.lane.transaction import OffsetCommit, Output, Transactions, transactional_id
from ticketgate.streams.lane.watching import watch_conditions

log = logging.getLogger(__name__)

# The group's other members wait this long for a worker to hand its lanes over (assignment.py needs 8 s at most).
REBALANCE_TIMEOUT_MS = 30_000
# aiokafka asks every 5 minutes, and a partition that was added is not served before.
METADATA_MAX_AGE_MS = 60_000
# aiokafka's own limit on members that nobody polls for. Nobody needs it here: the watch polls for idle lanes and busy
# ones alike, and what hangs ends the process (overdue.py). It is the client's alone, and the most that it takes.
MAX_POLL_INTERVAL_MS = 2**31 - 1
# A partition's share of a lane's batch should be one request: aiokafka's own 16 KiB made three of 256 tickets.
MOST_BATCH_BYTES = 256 * 1024
# A start asks each bootstrap server in turn; one that is silent is given up after 40 s.
START_TIMEOUT_S = 90.0
# The first wait before a new consumer and the longest.
RETRY_FIRST_S = 1.0
RETRY_MOST_S = 5.0
# A broker that is gone makes aiokafka's consumer try for ever to leave its group.
CONSUMER_STOP_TIMEOUT_S = 5.0


class Consuming:
    """The lanes of one role. `taker` takes their batches."""

    def __init__(self, terms: RoleTerms, *, taker: BatchTaker, parts: LaneParts) -> None:
        self.terms = terms
        self._kafka = connection_of(parts.settings)
        self._taker = taker
        self._parts = parts
        self._conditions = Conditions(parts.settings, terms, hand_over=parts.hand_over)
        self._consumer: AIOKafkaConsumer | None = None
        self._membership: Membership | None = None
        self._assignment: Assignment | None = None
        self._excluded: OtherStore | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._look_now = asyncio.Event()
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

    async def run(self) -> NoReturn:
        """Join the group, and stay until cancelled."""
        failures = 0
        while True:
            self._membership = None
            try:
                await self._stay()
            except Exception as err:  # noqa: BLE001 - whatever ended it, a new consumer may be let in
                failures = 1 if self._was_member else failures + 1
                await self._wait_after(err, failures)

    async def watch_conditions(self) -> None:
        """Look again and again whether the lanes may go on, until cancelled."""
        await watch_conditions(
            self._conditions,
            lambda: self.lanes,
            readiness=self._parts.readiness,
            part="conditions" if self.terms.role == "decide" else f"conditions {self.terms.source}",
            interval_s=self._parts.settings.condition_interval.total_seconds(),
            look_now=self._look_now,
        )

    def look_now(self) -> None:
        """Have the conditions looked at at once."""
        self._look_now.set()

    async def watch_leaders(self) -> None:
        """Look again and again whether the brokers that lead the lanes' partitions answer, until cancelled."""
        part = "leaders" if self.terms.role == "decide" else f"leaders {self.terms.source}"
        await watch_leaders(self._serving, self._parts.readiness, part=part)

    def _serving(self) -> tuple[AIOKafkaConsumer, Sequence[TopicPartition]] | None:
        sources = [lane.source for lane in self.lanes]
        return (self._consumer, sources) if self._consumer is not None and sources else None

    @property
    def _was_member(self) -> bool:
        return self._membership is not None and self._membership.heard_at is not None

    async def _stay(self) -> NoReturn:
        """Raises whatever keeps it from starting, joining or staying."""
        consumer = self._new_consumer(await self._prove_store())
        try:
            with self._step("starting"):
                await within(START_TIMEOUT_S, consumer.start())
                # It would join with nothing to serve, and be content.
                await within(START_TIMEOUT_S, require_topic(client_of(consumer), self.terms.source))
            self._consumer = consumer
            self._membership = membership = Membership(consumer, self.terms.source)
            self._positions = {}
            self._assignment = Assignment(
                consumer,
                new_lane=self._new_lane,
                telemetry=self._parts.telemetry,
                readiness=self._parts.readiness,
                topic=self.terms.source,
                on_assigned=self._joined,
            )
            self._parts.readiness.wait(self._part, "joining the group")
            consumer.subscribe([self.terms.source], listener=self._assignment)
            await self._new_watch(membership).run()
        finally:
            with self._step("leaving"):
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

    def _require_accepted(self) -> None:
        if self._excluded is not None:
            raise self._excluded

    def _step(self, what: str) -> AbstractContextManager[object]:
        return self._parts.steps.step(f"group {self.terms.group}: {what}", limit_s=STEP_LIMIT_S)

    def _joined(self) -> None:
        if self._membership is not None:
            self._membership.joined()
        self._parts.readiness.work(self._part)

    def _new_watch(self, membership: Membership) -> GroupWatch:
        return GroupWatch(
            membership,
            group=self.terms.group,
            session_s=self._parts.settings.session_timeout.total_seconds(),
            rebalance_s=REBALANCE_TIMEOUT_MS / 1000,
            find_reason=partial(find_reason, self._kafka, self.terms.group),
            on_known=lambda: self._parts.readiness.work(self._part),
            on_unknown=self._tell,
            check=self._require_accepted,
        )

    def _tell(self, err: Exception) -> None:
        """Say in /readyz, and in the log, why this worker is not in its group."""
        how, what = handling(err), told(err, self.terms.group)
        self._parts.readiness.wait(self._part, what)
        level = logging.ERROR if how.action is Action.REFUSE else logging.WARNING
        log.log(level, "not in group %s: %s", self.terms.group, what, extra={"cause": how.cause})

    async def _wait_after(self, err: Exception, failures: int) -> None:
        if may_hide_refusal(handling(err)) or isinstance(err, Outside):
            err = await find_reason(self._kafka, self.terms.group) or err
        self._tell(err)
        if handling(err).action is Action.REFUSE:
            await asyncio.sleep(REFUSAL_RETRY_S)
        else:
            await asyncio.sleep(min(RETRY_MOST_S, RETRY_FIRST_S * 2 ** min(failures - 1, 10)))

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
            max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
        )

    def _new_lane(self, source: TopicPartition) -> Lane:
        parts, (consumer, membership) = self._parts, self._require_consumer()
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
            steps=parts.steps,
            is_member=membership.is_member,
            diagnose=Diagnosis(self._kafka, parts.redis).of,
            on_hang=parts.on_hang,
        )

    def _new_output(self, source: TopicPartition, consumer: AIOKafkaConsumer) -> Output:
        settings = self._parts.settings
        common: Mapping[str, Any] = {
            "new_producer": partial(_new_producer, self._kafka),
            "max_request_size": settings.max_record_bytes * 2,
            # The broker's limit is one for a batch as for a record.
            "max_batch_size": min(MOST_BATCH_BYTES, settings.max_record_bytes),
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

    def _require_consumer(self) -> tuple[AIOKafkaConsumer, Membership]:
        if self._consumer is None or self._membership is None:
            raise RuntimeError("no consumer: a lane was asked for before the group was joined")
        return self._consumer, self._membership


async def _stop_consumer(consumer: AIOKafkaConsumer) -> None:
    try:
        await within(CONSUMER_STOP_TIMEOUT_S, consumer.stop())
    except Exception as err:  # noqa: BLE001 - whatever it says at its end, it is not used again
        log.debug("the consumer did not stop cleanly: %r", err)


def _new_producer(connection: KafkaConnection, **options: Any) -> AIOKafkaProducer:
    """One more producer, over a connection made anew: a renewed certificate counts from its lane's reopening on."""
    return AIOKafkaProducer(**connection.arguments(), **options)
