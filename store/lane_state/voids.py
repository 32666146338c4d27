"""Ranges of offsets that were passed over without an effect: lost to retention or truncation, or set aside by hand.

Promise: a range is journalled before its lane moves past it, so a claim from it may be taken over by another record
of the same ticket.
"""

from __future__ import annotations

from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.script import Script
from ticketgate.store.tokens import GUARD, LaneToken

# A range that stands is never shortened: what was passed over stays passed over.
_JOURNAL = Script(
    "journal a void",
    """
local before = tonumber(stop)
local ranges = redis.call('HGETALL', journal)
for i = 1, #ranges, 2 do
  if tonumber(ranges[i]) >= before then redis.call('HDEL', journal, ranges[i]) end
end
local found = tonumber(redis.call('HGET', journal, start) or '-1')
if tonumber(start) < before and found < before then redis.call('HSET', journal, start, stop) end
return 0
""",
    after=[GUARD],
    keys=["journal"],
    arguments=["start", "stop"],
)


class Voids:
    """The journal of one namespace: per partition a hash from a range's first offset to one past its last."""

    def __init__(self, redis: Redis, keys: Keys, durability: Durability | None = None) -> None:
        """`durability` None: to read only."""
        self._redis = redis
        self._keys = keys
        self._durability = durability

    async def journal(self, token: LaneToken, offsets: range) -> None:
        """Declare that no record in `offsets`, which may be empty, has had or will have an effect, and forget the
        ranges from its end on: journalled before a commit that never came, they may yet be read.

        Raises `Superseded`, `ClaimsNotDurable`, and redis-py's errors.
        """
        if self._durability is None:
            raise RuntimeError("these voids are to be read only")
        async with self._redis.pipeline(transaction=False) as pipeline:
            _JOURNAL.queue(
                pipeline,
                token=token.name,
                own_token=token.value,
                journal=self._keys.void(token.topic, token.partition),
                start=offsets.start,
                stop=offsets.stop,
            )
            await self._durability.execute(pipeline, self._keys, is_rare=bool(offsets))

    async def ranges(self, topic: str, partition: int) -> tuple[range, ...]:
        """The journalled ranges of a partition, in order of their first offset."""
        found = await self._redis.hgetall(self._keys.void(topic, partition))
        return tuple(
            sorted((range(int(start), int(stop)) for start, stop in found.items()), key=lambda r: r.start)
        )

    async def is_void(self, coordinate: Coordinate) -> bool:
        """Whether a coordinate lies in a journalled range."""
        ranges = await self.ranges(coordinate.topic, coordinate.partition)
        return any(coordinate.offset in offsets for offsets in ranges)
