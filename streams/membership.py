"""What the group's coordinator knows of this worker: whether it still belongs, and how far the group committed.

aiokafka has no public way to ask the first, and asks the second for one partition at a time; both go to its
coordinator here and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

# How long the coordinator may take: it may be moving, and aiokafka would ask for ever.
ASK_TIMEOUT_S = 15.0


class Membership:
    """A consumer's place in its group. Calls raise aiokafka's errors, or TimeoutError after ASK_TIMEOUT_S."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._coordinator: Any = consumer._coordinator

    @property
    def has_coordinator(self) -> bool:
        """Whether a coordinator is known; there is none while no broker can be reached."""
        return self._coordinator.coordinator_id is not None

    async def is_member(self) -> bool:
        """Whether the group knows this worker, asked now: what was heard before the worker was stopped is stale."""
        async with asyncio.timeout(ASK_TIMEOUT_S):
            await self._coordinator.ensure_coordinator_known()
            return bool(await self._coordinator._do_heartbeat())

    async def committed(self, sources: Collection[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        """The offset that the group committed for each, None where there is none."""
        async with asyncio.timeout(ASK_TIMEOUT_S):
            found = await self._coordinator.fetch_committed_offsets(list(sources))
        return {
            source: found[source].offset if source in found and found[source].offset >= 0 else None
            for source in sources
        }
