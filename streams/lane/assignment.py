"""Rebalances to lanes: one lane for each partition that the group gives this worker, and none for any other.

Promise: a partition is paused before its lane starts (step 0), and its lane has let go of it before the group moves
on, within a bound: what a lane had not committed by then is the successor's. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.lane import Lane

log = logging.getLogger(__name__)

# The other members wait for this one at every rebalance. A lane's close has limits of its own; beyond this they are
# told that it failed, and the fence keeps what is left of the lane from getting anything in.
HANDOVER_TIMEOUT_S = 8.0


class Assignment(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """The lanes of one consumer of `topic`. `new_lane` makes a lane; `on_assigned` is called after each rebalance."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        *,
        new_lane: Callable[[TopicPartition], Lane],
        telemetry: Telemetry,
        readiness: Readiness,
        topic: str,
        on_assigned: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._new_lane = new_lane
        self._telemetry = telemetry
        self._readiness = readiness
        self._topic = topic
        self._on_assigned = on_assigned
        self._lanes: dict[Lane, asyncio.Task[None]] = {}
        self._is_closed = False

    @property
    def lanes(self) -> Collection[Lane]:
        """The lanes at work."""
        return self._lanes.keys()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """0. Pause, start the lanes' tasks, return: no heartbeat is sent while this runs."""
        self._consumer.pause(*assigned)
        if self._is_closed:
            return
        for source in sorted(assigned):
            lane = self._new_lane(source)
            self._lanes[lane] = asyncio.create_task(lane.run(), name=lane.name)
        self._telemetry.lanes(self._topic, len(self._lanes))
        log.info("assigned %d partitions", len(assigned))
        self._on_assigned()

    async def on_partitions_revoked(  # pyright: ignore[reportIncompatibleMethodOverride] - may be a coroutine
        self, revoked: Collection[TopicPartition]
    ) -> None:
        """Cut the lanes short: a transaction under way is aborted by the successor's fence."""
        await self._cut_short()

    async def drain(self, grace_s: float) -> None:
        """Let the batches under way finish within `grace_s` seconds, then cut short. No lane starts afterwards."""
        self._is_closed = True
        for lane in self._lanes:
            lane.drain()
        if self._lanes:
            await asyncio.wait(self._lanes.values(), timeout=grace_s)
        await self._cut_short()

    async def _cut_short(self) -> None:
        ending, self._lanes = self._lanes, {}
        self._telemetry.lanes(self._topic, 0)
        if not ending:
            return
        for lane, task in ending.items():
            # A cancellation alone can get lost: before Python 3.12 asyncio.wait_for, with which redis-py sends,
            # swallows one that comes in the moment in which the sending ends. Such a lane would go on beside its
            # successor, and each would fence the other.
            lane.drain()
            task.cancel()
        _, late = await asyncio.wait(ending.values(), timeout=HANDOVER_TIMEOUT_S)
        self._readiness.lanes_ended(lane.name for lane in ending)
        for task in late:
            log.warning(
                "%s did not end within %g s; its successor fences it", task.get_name(), HANDOVER_TIMEOUT_S
            )
