"""Ranges of offsets that were passed over without an effect: lost to retention or truncation, or set aside by hand.

Promise: a range is journalled before its lane moves past it, so a claim from it may be taken over by another record
of the same ticket. Source: DESIGN section 4, steps 2 and 4.
"""

from __future__ import annotations

from redis.asyncio import Redis
from ticketgate.codecs.identity import Coordinate
from ticketgate.store.keys import Keys


class Voids:
    """The journal of one namespace: per partition a hash from a range's first offset to one past its last."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def journal(self, topic: str, partition: int, offsets: range) -> None:
        """Declare that no record in `offsets` has had, or will have, an effect."""
        await self._redis.hset(self._keys.void(topic, partition), str(offsets.start), str(offsets.stop))

    async def retract(self, topic: str, partition: int, offset: int) -> None:
        """Forget the ranges from `offset` on: journalled before a commit that never came, they may yet be read."""
        late = [str(each.start) for each in await self.ranges(topic, partition) if each.start >= offset]
        if late:
            await self._redis.hdel(self._keys.void(topic, partition), *late)

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
