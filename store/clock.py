"""Redis' clock: the one by which lifetimes and ages are told, so that no worker's clock decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def redis_now(redis: Redis) -> datetime:
    """The moment in Redis, with zone UTC. Raises redis-py's errors."""
    seconds, microseconds = await redis.time()
    return _EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
