"""Step 2 of the protocol: where a lane begins, and whether it may.

Promise: the position is the committed offset read after the fence, and Redis' marks agree with it. Where they do not,
something was lost or reset, and the lane refuses with the remedy instead of emitting again or passing over.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import Marks, mark_committed, read_all_marks
from ticketgate.store.lane_state.underway import UnderWays
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.tokens import LaneToken, take_token
from ticketgate.streams.config.role_terms import RoleTerms
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.lane.membership import Membership
from ticketgate.streams.lane.opening.care import Care, care_from
from ticketgate.streams.lane.opening.origin import Origin

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
    """Where a lane begins: the next record's offset, the lane's right to write to Redis, the care that it takes for
    what ended workers before, and the last record that is known to have been read."""

    next_offset: int
    token: LaneToken
    care: Care
    last: Witness | None = None


class Opening:
    """What a lane reads before it takes records.

    batch_size: most records that a lane takes at once.
    check_conditions: raises `ConditionFailed`, `LaneFault`, and errors of redis-py and aiokafka; looked at before the
    token is taken, so that who may not open disturbs nobody.
    """

    def __init__(
        self,
        *,
        consumer: AIOKafkaConsumer,
        membership: Membership,
        redis: Redis,
        keys: Keys,
        under_ways: UnderWays,
        batch_size: int,
        durability: Durability,
        check_conditions: Callable[[], Awaitable[None]],
        terms: RoleTerms,
    ) -> None:
        self._consumer = consumer
        self._membership = membership
        self._redis = redis
        self._keys = keys
        self._voids = Voids(redis, keys, durability)
        self._under_ways = under_ways
        self._batch_size = batch_size
        self._check_conditions = check_conditions
        self._terms = terms
        self._origin = Origin(
            consumer, redis, keys, replay=terms.replay, has_claims=not terms.commits_before_acting
        )

    async def take_token(self, source: TopicPartition) -> LaneToken:
        """The right to write to Redis for the partition, to be taken before the fence: whoever commits must be sure
        that no later lane has begun to write, and whoever writes that no later lane has begun to read.

        Raises `LaneFault` and errors of aiokafka and redis-py."""
        try:
            await self._check_conditions()
        except ConditionFailed as err:
            raise LaneRefusal("conditions", err.what, err.remedy) from err
        return await take_token(self._redis, self._keys, source.topic, source.partition)

    async def read_start(self, source: TopicPartition, token: LaneToken) -> Start:
        """Where to begin. Raises `LaneRefusal`, `Superseded`, or errors of aiokafka and redis-py."""
        partitions = self._consumer.partitions_for_topic(source.topic) or set()
        sources = {source} | {TopicPartition(source.topic, partition) for partition in partitions}
        # The offsets before the marks: a lane that commits in between has raised its marks before.
        offsets = await self._membership.committed(sources)
        committed = offsets[source]
        async with asyncio.timeout(READ_TIMEOUT_S):
            first = int((await self._consumer.beginning_offsets([source]))[source])
            end = int((await self._consumer.end_offsets([source]))[source])
        # Before the marks: in another topic, or behind a lost end, the offsets mean other records.
        last = await self._origin.check(source, token, committed=committed, end=end)
        await self._compare_with_marks(source, offsets)
        lost = range(committed or 0, max(committed or 0, first))
        # Journalled before the lane moves on: claims from there may be taken over by a copy sent later.
        await self._voids.journal(token, lost)
        if lost and committed is not None:
            log.warning(
                "%s:%d lost %s to retention before they were read", source.topic, source.partition, lost
            )
        if committed is not None:
            # For a commit whose lane died before it could mark it.
            await mark_committed(self._redis, self._keys, token, committed)
        # Written down before anything is fetched.
        left = await self._under_ways.begin(token, lost.stop)
        care = care_from(left, start=lost.stop, end=end, most=self._batch_size)
        return Start(lost.stop, token, care, last)

    async def verify(self, source: TopicPartition, last: Witness) -> None:
        """The topic still has the record, as far as can be told. Raises `TopicMadeAnew`, `TopicCut` and aiokafka's
        errors."""
        await self._origin.verify(source, last)

    async def _compare_with_marks(
        self, source: TopicPartition, offsets: Mapping[TopicPartition, int | None]
    ) -> None:
        marks = await read_all_marks(
            self._redis, self._keys, source.topic, [each.partition for each in offsets]
        )
        # Claims are shared by all partitions: one that lost its own says that others may have lost theirs.
        require_claims(offsets, marks, self._terms)
        committed, seen = offsets[source], marks[source.partition].committed
        if seen is not None and (committed is None or committed < seen):
            raise LaneRefusal(
                "offsets_reset",
                f"group committed to {committed}, but was at {seen} before: its offsets were reset",
                f"`ticketgate {self._terms.replay} --replay-from marks` goes on where commits ended",
            )


def require_claims(
    offsets: Mapping[TopicPartition, int | None], marks: Mapping[int, Marks], terms: RoleTerms
) -> None:
    """Nothing is committed of a role's source that Redis has no claims of. offsets: read before `marks`, which are by
    partition. Raises `LaneRefusal`."""
    no_mark = -1 if terms.commits_before_acting else 0
    for each, offset in sorted(offsets.items()):
        mark = marks[each.partition].claimed
        claimed = no_mark if mark is None else mark
        if offset is not None and offset > claimed:
            raise LaneRefusal(
                "claims_lost",
                f"{each.topic}:{each.partition} is committed to {offset}, claimed only to {max(0, claimed)}:"
                " Redis has lost claims",
                f"run `ticketgate {terms.rebuild}`",
            )
