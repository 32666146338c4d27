"""The watch over Redis: a worker that needs it and does not reach it is not ready, lanes at work or not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from redis.asyncio import Redis
from redis.exceptions import RedisError
from ticketgate.store.connect import ServerChanged
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.lane.recovery import handling

log = logging.getLogger(__name__)

WATCH_S = 2.0
PART = "redis"


async def watch_redis(
    redis: Redis, readiness: Readiness, *, where: str, on_other_server: Callable[[], None]
) -> NoReturn:
    """Ask every WATCH_S, and tell /readyz, until cancelled. where: the server, without a password. on_other_server is
    called as often as another one answers than was handed over to: no idle lane would ask."""
    while True:
        try:
            await redis.ping()
        except (RedisError, OSError) as err:
            if isinstance(err, ServerChanged):
                on_other_server()
            how = handling(err)
            remedy = how.remedy or "start it, or set TICKETGATE_REDIS"
            readiness.wait(PART, f"{how.cause}: no answer from Redis at {where} ({err}); {remedy}")
            log.warning("no answer from Redis at %s (%r)", where, err, extra={"cause": how.cause})
        else:
            readiness.work(PART)
        await asyncio.sleep(WATCH_S)
