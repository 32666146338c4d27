"""A person's orders to pass over a batch that nobody can read (`ticketgate dead-letter skip`).

Promise: an order is only permission. The lane asks for it when it meets a batch that it cannot read, so an order that
is wrong or comes late passes over nothing that can be read.
"""

from __future__ import annotations

from datetime import timedelta

from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.store.keys import Keys

# A lane that refuses asks every few seconds. An order that nobody took by then was for another day's trouble.
ORDER_LIFETIME = timedelta(days=1)


class Skips:
    """The orders of one namespace: for each partition one, the offset of a record in the batch."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def order(self, coordinate: Coordinate) -> None:
        """Allow the batch that holds this coordinate to be passed over; an earlier order of its partition is over."""
        name = self._keys.skip(coordinate.topic, coordinate.partition)
        await self._redis.set(name, coordinate.offset, ex=ORDER_LIFETIME)

    async def is_ordered(self, topic: str, partition: int, offsets: range) -> bool:
        """Whether the partition's order is for one of these offsets."""
        found = await self._redis.get(self._keys.skip(topic, partition))
        return found is not None and int(found) in offsets

    async def done(self, topic: str, partition: int) -> None:
        """Forget the partition's order."""
        await self._redis.delete(self._keys.skip(topic, partition))
