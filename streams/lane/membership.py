"""What the group's coordinator knows of this worker: whether it belongs, since when it was heard, and how far the group
committed.

aiokafka has no public way to ask the first two, and asks the last for one partition at a time; all go to its
coordinator here and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.internals import coordinator_of, heartbeat_of, replace_heartbeat

# How long the coordinator may take: it may be moving, and aiokafka would ask for ever.
ASK_TIMEOUT_S = 15.0
# A poll for nothing is answered at once, except during a rebalance.
POLL_TIMEOUT_S = 1.0
# Kafka numbers partitions by 32 bits and begins with 0: no topic has this one.
NO_PARTITION = 2**31 - 1


class Membership:
    """A consumer's place in its group. One for each consumer. Calls raise aiokafka's errors, or TimeoutError after
    ASK_TIMEOUT_S."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str) -> None:
        """consumer: started."""
        self._consumer = consumer
        self._nowhere = TopicPartition(topic, NO_PARTITION)
        self._coordinator: Any = coordinator_of(consumer)
        self._heard_at: float | None = None
        self._ask = heartbeat_of(self._coordinator)
        # aiokafka tells nobody whether its heartbeats are answered.
        replace_heartbeat(self._coordinator, self._ask_and_note)

    @property
    def heard_at(self) -> float | None:
        """When the group last knew this worker, by `time.monotonic`: the moment it was asked, and not the answer's, for
        the worker may have been stopped in between. None before it was let in."""
        return self._heard_at

    def joined(self) -> None:
        """The group has let this worker in, or let it stay."""
        self._heard_at = time.monotonic()

    async def poll(self) -> None:
        """Poll for nothing, as aiokafka wants it of a member: it leaves a group when nobody polls for long, joins again
        only when somebody does, and tells errors of joining to nobody else. Raises those.

        During a rebalance it is broken off, after which aiokafka believes that somebody polls for ever: its limit on
        idle members is off then, and nothing else changes.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_TIMEOUT_S):
                await self._consumer.getmany(self._nowhere, timeout_ms=0)

    async def is_member(self) -> bool:
        """Whether the group knows this worker, asked now: what was heard before the worker was stopped is stale."""
        async with _asking():
            await self._coordinator.ensure_coordinator_known()
            return bool(await heartbeat_of(self._coordinator)())

    async def committed(self, sources: Collection[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        """The offset that the group committed for each, None where there is none."""
        async with _asking():
            found = await self._coordinator.fetch_committed_offsets(list(sources))
        return {
            source: found[source].offset if source in found and found[source].offset >= 0 else None
            for source in sources
        }

    async def _ask_and_note(self) -> bool:
        asked_at = time.monotonic()
        known = bool(await self._ask())
        if known:
            self._heard_at = asked_at
        return known


@asynccontextmanager
async def _asking() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            yield
    except TimeoutError as err:
        raise TimeoutError(f"no answer from the group's coordinator in {ASK_TIMEOUT_S:g} s") from err


class NotAMember(LaneFault):
    """The group does not know this worker any more: another one may serve the partition, and must not be fenced."""

    def __init__(self) -> None:
        super().__init__("the group does not know this worker", Handling(Action.REOPEN, "not_a_member"))
