"""Looks at effects that were begun and have not ended: so that one which ends the process is not looked at for ever.

One hash a namespace, from an effect's key to how many looks at it began since one ended. Whoever lives ends its look,
whatever came of it. Relies on: nothing; a Redis that lost it costs as many looks again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from redis.asyncio import Redis
from ticketgate.store.keys import Keys


class Looks:
    """The looks of one namespace. Raises redis-py's errors."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._name = keys.looks

    async def begun(self, keys: Collection[str]) -> Mapping[str, int]:
        """How many looks at each of these effects began and never ended."""
        if not keys:
            return {}
        found = await self._redis.hmget(self._name, list(keys))
        return {key: int(count or 0) for key, count in zip(keys, found, strict=True)}

    async def begin(self, key: str) -> None:
        """A look at an effect begins."""
        await self._redis.hincrby(self._name, key, 1)

    async def end(self, key: str) -> None:
        """A look at an effect ended, and so its process outlived it."""
        await self._redis.hdel(self._name, key)
