"""Step 2 of the protocol: where a lane begins, and whether it may.

Promise: the position is the committed offset read after the fence, and Redis' marks agree with it. Where they do not,
something was lost or reset, and the lane refuses with the remedy instead of emitting again or passing over.
Source: DESIGN section 4, step 2 and conditions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed
from ticketgate.store.hangs import Hangs
from ticketgate.store.keys import Keys
from ticketgate.store.marks import read_marks
from ticketgate.store.voids import Voids
from ticketgate.streams.recovery import Action, Handling, LaneFault

log = logging.getLogger(__name__)

# The group's coordinator may be moving; aiokafka would ask for ever.
READ_TIMEOUT_S = 15.0


class LaneRefusal(LaneFault):
    """A lane may not open. It looks again from time to time; a person must act on `remedy`."""

    def __init__(self, cause: str, what: str, remedy: str) -> None:
        super().__init__(what, Handling(Action.REFUSE, cause, remedy))
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Start:
    """Where a lane begins: the next record's offset, and the offset that the group committed, None before the first
    commit. The two differ where records were lost to retention. `hangs` tells at which offsets a worker hung before."""

    next_offset: int
    committed: int | None
    hangs: Mapping[int, int]


class Opening:
    """What a lane reads before it takes records. `check_conditions` raises `ConditionFailed`."""

    def __init__(
        self,
        *,
        consumer: AIOKafkaConsumer,
        redis: Redis,
        keys: Keys,
        hangs: Hangs,
        check_conditions: Callable[[], Awaitable[None]],
    ) -> None:
        self._consumer = consumer
        self._redis = redis
        self._keys = keys
        self._voids = Voids(redis, keys)
        self._hangs = hangs
        self._check_conditions = check_conditions

    async def read_start(self, source: TopicPartition) -> Start:
        """Where to begin. Raises `LaneRefusal`, or errors of aiokafka and redis-py."""
        try:
            await self._check_conditions()
        except ConditionFailed as err:
            raise LaneRefusal("conditions", err.what, err.remedy) from err
        async with asyncio.timeout(READ_TIMEOUT_S):
            committed = await self._consumer.committed(source)
            first = (await self._consumer.beginning_offsets([source]))[source]
            end = (await self._consumer.end_offsets([source]))[source]
        await self._compare_with_marks(source, committed)
        hangs = await self._hangs.read(source.topic, source.partition)
        if committed is None:
            return Start(int(first), None, hangs)
        if committed > end:
            raise LaneRefusal(
                "input_truncated",
                f"committed to {committed}, but {source.topic}:{source.partition} ends at {end}",
                "records were lost, or the topic was made anew: take a new TICKETGATE_GROUP and TICKETGATE_NAMESPACE",
            )
        # Not what is about to be journalled again: in between, a copy would be taken for a duplicate.
        await self._voids.retract(source.topic, source.partition, max(committed, first))
        if committed < first:
            # Journalled before the lane moves on: claims from there may be taken over by a copy sent later.
            await self._voids.journal(source.topic, source.partition, range(committed, first))
            log.warning(
                "%s:%d lost offsets %d to %d to retention before they were read",
                source.topic,
                source.partition,
                committed,
                first - 1,
            )
        return Start(int(max(committed, first)), committed, hangs)

    async def _compare_with_marks(self, source: TopicPartition, committed: int | None) -> None:
        marks = await read_marks(self._redis, self._keys, source.topic, source.partition)
        if committed is not None and committed > (marks.claimed or 0):
            raise LaneRefusal(
                "claims_lost",
                f"committed to {committed}, claimed only to {marks.claimed or 0}: Redis has lost claims",
                "run `ticketgate claims rebuild`",
            )
        if marks.committed is not None and (committed is None or committed < marks.committed):
            raise LaneRefusal(
                "offsets_reset",
                f"group committed to {committed}, but was at {marks.committed} before: its offsets were reset",
                "`ticketgate replay --replay-from marks` goes on where commits ended",
            )
