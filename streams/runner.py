"""A worker's parts and their order: web port, Redis, the consumer, its lanes; and back.

Promise: `start` returns with the web port open and everything else on its way; while Redis or the broker is away the
worker waits and /readyz says for which. `stop` drains the lanes within the grace before anything is closed.
Source: DESIGN section 4.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from aiohttp import web
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaError
from redis.exceptions import RedisError
from ticketgate.store.claims import Claims
from ticketgate.store.connect import connect
from ticketgate.store.durability import Durability
from ticketgate.store.hangs import Hangs
from ticketgate.store.keys import Keys
from ticketgate.streams.assignment import Assignment
from ticketgate.streams.batch import BatchHung, BatchParts
from ticketgate.streams.conditions import Conditions
from ticketgate.streams.deciding import Decider, ReportingDecider
from ticketgate.streams.lane import Lane
from ticketgate.streams.membership import Membership
from ticketgate.streams.opening import Opening
from ticketgate.streams.passing import PassingOver
from ticketgate.streams.readiness import Readiness
from ticketgate.streams.records import OutputTopics, RecordWriter
from ticketgate.streams.settings import Settings
from ticketgate.streams.telemetry import Telemetry
from ticketgate.streams.tracing import open_tracing
from ticketgate.streams.transaction import OffsetCommit, Output, Transactions
from ticketgate.streams.web.health import health_routes
from ticketgate.streams.web.server import WebServer

log = logging.getLogger(__name__)

# The group's other members wait this long for a worker to hand its lanes over (assignment.py needs 8 s at most).
REBALANCE_TIMEOUT_MS = 30_000
# A consumer that could not start tries again after this.
START_RETRY_S = 1.0
# A broker that is gone makes aiokafka's consumer try for ever to leave its group.
CONSUMER_STOP_TIMEOUT_S = 5.0


# Redis may be what ails, and the process must end all the same.
HANG_NOTE_TIMEOUT_S = 3.0
EXIT_HUNG = 70


class Runner:
    """One worker process without its framework: app.py starts it as a Faust service."""

    def __init__(
        self,
        settings: Settings,
        *,
        decider: Decider,
        telemetry: Telemetry,
        describe: Callable[[], dict[str, object]],
        routes: Iterable[web.AbstractRouteDef] = (),
    ) -> None:
        """`routes` are further pages of the web port, beside health and metrics."""
        self._settings = settings
        self._telemetry = telemetry
        self._readiness = Readiness("kafka")
        self._redis = connect(settings.redis.get_secret_value(), timeout=settings.redis_timeout)
        self._keys = Keys(settings.namespace)
        self._durability = Durability(
            replicas=settings.redis_replicas,
            syncs_itself=settings.redis_fsync == "always",
            timeout=settings.redis_timeout,
        )
        self._hangs = Hangs(self._redis, self._keys, ttl=settings.claim_ttl)
        self._conditions = Conditions(settings, self._redis)
        self._consumer: AIOKafkaConsumer | None = None
        self._assignment: Assignment | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._consuming: asyncio.Task[None] | None = None
        self._describe = describe
        self._web = WebServer(
            [
                *health_routes(
                    readiness=self._readiness,
                    telemetry=telemetry,
                    guarantee=settings.guarantee,
                    describe=self._tell,
                ),
                *routes,
            ],
            bind=settings.web_bind,
            port=settings.web_port,
        )
        self._batch_parts = BatchParts(
            claims=Claims(
                self._redis,
                self._keys,
                ttl=settings.claim_ttl,
                durability=self._durability,
            ),
            decider=ReportingDecider(decider, self._readiness),
            writer=RecordWriter(
                OutputTopics(settings.topic_dispatch, settings.topic_review, settings.topic_dead_letter),
                max_bytes=settings.max_record_bytes,
                dispatch_with_ticket=settings.dispatch_with_ticket,
            ),
            telemetry=telemetry,
            namespace=settings.namespace,
            max_ticket_bytes=settings.max_ticket_bytes,
            now=lambda: datetime.now(UTC),
            tracing=open_tracing(os.environ),
        )

        self._passing = PassingOver(
            redis=self._redis,
            keys=self._keys,
            claims=self._batch_parts.claims,
            durability=self._durability,
            writer=self._batch_parts.writer,
            telemetry=telemetry,
        )

    @property
    def web_address(self) -> str:
        """`host:port` of the web port, once started."""
        return self._web.address

    async def start(self) -> None:
        """Open the web port and begin to consume. Raises OSError if the web port is taken."""
        if self._settings.guarantee == "at_least_once":
            log.warning("guarantee is at_least_once: a crash between sending and committing repeats a batch")
        await self._web.start()
        self._consuming = asyncio.create_task(self._consume(), name="consume")

    async def stop(self) -> None:
        """Drain the lanes within the grace, leave the group, close."""
        self._readiness.wait("worker", "stopping")
        if self._assignment is not None:
            await self._assignment.drain(self._settings.drain_grace.total_seconds())
        if self._consuming is not None:
            self._consuming.cancel()
            await asyncio.wait([self._consuming])
        await self._redis.aclose()
        await self._web.stop()

    async def _consume(self) -> None:
        """Join the group, and stay until cancelled; a consumer that cannot start is made anew."""
        while True:
            consumer = self._new_consumer()
            try:
                await consumer.start()
                self._consumer = consumer
                self._positions = {}
                self._assignment = Assignment(
                    consumer,
                    new_lane=self._new_lane,
                    telemetry=self._telemetry,
                    readiness=self._readiness,
                    on_assigned=lambda: self._readiness.work("kafka"),
                )
                self._readiness.wait("kafka", "joining the group")
                consumer.subscribe([self._settings.topic_tickets], listener=self._assignment)
                await asyncio.Event().wait()
            except (KafkaError, OSError) as err:
                self._readiness.wait("kafka", f"no broker answers at {self._settings.kafka}")
                log.warning("cannot consume from %s: %r; trying again", self._settings.kafka, err)
                await asyncio.sleep(START_RETRY_S)
            finally:
                await _stop_consumer(consumer)

    def _new_consumer(self) -> AIOKafkaConsumer:
        settings = self._settings
        session_ms = round(settings.session_timeout.total_seconds() * 1000)
        return AIOKafkaConsumer(
            bootstrap_servers=settings.kafka,
            group_id=settings.group,
            client_id=f"ticketgate-{settings.namespace}",
            auto_offset_reset="none",
            enable_auto_commit=False,
            isolation_level="read_committed",
            # Not the sticky one: aiokafka's gives a partition to two members after one of them was frozen.
            partition_assignment_strategy=(RoundRobinPartitionAssignor,),
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=max(100, session_ms // 5),
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        )

    def _new_lane(self, source: TopicPartition) -> Lane:
        consumer = self._require_consumer()
        membership = Membership(consumer)
        return Lane(
            source,
            consumer=consumer,
            opening=Opening(
                consumer=consumer,
                membership=membership,
                redis=self._redis,
                keys=self._keys,
                hangs=self._hangs,
                durability=self._durability,
                check_conditions=self._conditions.check,
            ),
            output=self._new_output(source, consumer),
            passing=self._passing,
            parts=self._batch_parts,
            batch_size=self._settings.batch_size,
            positions=self._positions,
            readiness=self._readiness,
            is_member=membership.is_member,
            on_hang=self._end_hung,
        )

    def _new_output(self, source: TopicPartition, consumer: AIOKafkaConsumer) -> Output:
        settings = self._settings
        common = {
            "source": source,
            "commit_timeout_s": settings.commit_timeout.total_seconds(),
            "bootstrap_servers": settings.kafka,
            "max_request_size": settings.max_record_bytes * 2,
        }
        if settings.guarantee == "at_least_once":
            return OffsetCommit(consumer=consumer, **common)
        return Transactions(
            group=settings.group,
            transactional_id=f"{settings.namespace}.{source.topic}.{source.partition}",
            transaction_timeout_s=settings.transaction_timeout.total_seconds(),
            **common,
        )

    async def _end_hung(self, source: TopicPartition, hung: BatchHung) -> None:
        """A hung thread ends with its process alone; the successor is told what to look out for."""
        self._readiness.wait("scorer", str(hung))
        log.error(
            "lane %s:%d: %s; ending, for a successor to take over", source.topic, source.partition, hung
        )
        try:
            async with asyncio.timeout(HANG_NOTE_TIMEOUT_S):
                await self._hangs.record(source.topic, source.partition, hung.offsets)
        except (RedisError, OSError, TimeoutError) as err:
            log.warning("the hang could not be written down (%r); the successor may hang on it too", err)
        logging.shutdown()
        os._exit(EXIT_HUNG)

    def _require_consumer(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise RuntimeError("no consumer: a lane was asked for before the group was joined")
        return self._consumer

    def _tell(self) -> dict[str, object]:
        lanes = self._assignment.lanes if self._assignment is not None else ()
        return {**self._describe(), "lanes": sorted(lane.name for lane in lanes)}


async def _stop_consumer(consumer: AIOKafkaConsumer) -> None:
    try:
        async with asyncio.timeout(CONSUMER_STOP_TIMEOUT_S):
            await consumer.stop()
    except (KafkaError, OSError, TimeoutError) as err:
        log.debug("the consumer did not stop cleanly: %r", err)
