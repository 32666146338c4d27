"""Tickets during whose deciding a worker hung, by partition: so that one ticket cannot end worker after worker.

A scorer that hangs in native code can only be ended with its process. Whoever takes the partition over finds here
which tickets were under way: it decides them one by one, and one that hung alone is not decided again but reviewed.
Entries go with the claims: after `ttl` nobody reads the tickets again. Source: DESIGN section 4, step 5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from redis.asyncio import Redis
from ticketgate.store.keys import Keys


class Hangs:
    """The hangs of one namespace: for each partition a hash from offset to how often."""

    def __init__(self, redis: Redis, keys: Keys, *, ttl: timedelta) -> None:
        self._redis = redis
        self._keys = keys
        self._ttl = ttl

    async def record(self, topic: str, partition: int, offsets: Collection[int]) -> None:
        """Count one hang for each offset."""
        name = self._keys.hung(topic, partition)
        async with self._redis.pipeline(transaction=True) as pipeline:
            for offset in offsets:
                pipeline.hincrby(name, str(offset), 1)
            pipeline.expire(name, self._ttl)
            await pipeline.execute()

    async def read(self, topic: str, partition: int) -> Mapping[int, int]:
        """How often each offset of the partition was under way when a worker hung; mostly empty."""
        found = await self._redis.hgetall(self._keys.hung(topic, partition))
        return {int(offset): int(count) for offset, count in found.items()}
