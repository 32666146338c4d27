"""A connection to Redis or Valkey whose every call ends within a bound.

Source: DESIGN section 4: while Redis is away nothing is emitted, so a call must end for the lane to say so.
"""

from __future__ import annotations

from datetime import timedelta

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def connect(url: str, *, timeout: timedelta) -> Redis:
    """A client for `url` (redis://, rediss:// or unix://). Nothing is sent yet.

    Raises ValueError if the URL is none. Calls raise redis-py's errors after at most `timeout`; none is retried
    here, for a lane has one way to recover, and that is to reopen.
    """
    return Redis.from_url(
        url,
        socket_timeout=timeout.total_seconds(),
        socket_connect_timeout=timeout.total_seconds(),
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
