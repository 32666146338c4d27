"""Redis' clock: the one by which lifetimes and ages are told, so that no worker's clock decides."""

from __future__ import annotations

from datetime import datetime

from redis.asyncio import Redis
from ticketgate.codecs.values.times import from_epoch_ms


async def redis_now(redis: Redis) -> datetime:
    """The moment in Redis, with zone UTC. Raises redis-py's errors."""
    return from_epoch_ms(await redis_now_ms(redis))


async def redis_now_ms(redis: Redis) -> int:
    """The same in ms since 1970."""
    seconds, microseconds = await redis.time()
    return int(seconds) * 1000 + int(microseconds) // 1000
