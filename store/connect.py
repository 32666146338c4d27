"""A connection to Redis or Valkey whose every call ends within a bound, and that knows which server it leads to.

Promise: with a `ServerGuard` no command leaves on a connection to another server than the one that the process accepted
last: each new connection asks first, which costs one round trip within the same bound, and accepting another server
drops all connections, so one that was demoted behind its address is not asked again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from ticketgate.store.sentinel import SentinelUrl
from ticketgate.store.servers import ServerId, server_id

# redis-py's own pool has 100 and refuses the next call, and each lane of a worker asks for several at once. As many as
# a server takes by its own default (maxclients): what it refuses beyond is told by it.
MOST_CONNECTIONS = 10_000


class ServerChanged(RedisConnectionError):
    """Another Redis answers than the one that the process accepted. Nothing was sent to it; the lane reopens."""

    def __init__(self, accepted: ServerId, found: ServerId) -> None:
        super().__init__(f"Redis is another server now: {found}, not {accepted}")


@dataclass(slots=True)
class ServerGuard:
    """The server that this process accepted last, None before the first."""

    accepted: ServerId | None = None
    pools: list[Any] = field(default_factory=list)

    async def accept(self, server: ServerId) -> None:
        """Let commands go to this server, and to no other. What is under way to another one fails."""
        if server == self.accepted:
            return
        self.accepted = server
        await asyncio.gather(*(pool.disconnect() for pool in self.pools), return_exceptions=True)

    async def on_connect(self, connection: Any) -> None:
        """redis-py's hook: what it does itself, and then the question."""
        await connection.on_connect()
        if self.accepted is None:
            return
        await connection.send_command("INFO", "server", "replication", check_health=False)
        found = server_id(_fields(await connection.read_response()))
        if found != self.accepted:
            raise ServerChanged(self.accepted, found)


def connect(url: str, *, timeout: timedelta, guard: ServerGuard | None = None) -> Redis:
    """A client for `url`: redis://, rediss:// or unix://, or what sentinel.py reads. Nothing is sent yet.

    Raises ValueError if the URL is none. Calls raise redis-py's errors after at most `timeout`; none is retried
    here, for a lane has one way to recover, and that is to reopen. Sentinels are asked anew for each connection.
    """
    options: dict[str, Any] = {
        "socket_timeout": timeout.total_seconds(),
        "socket_connect_timeout": timeout.total_seconds(),
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "max_connections": MOST_CONNECTIONS,
    }
    if guard is not None:
        options["redis_connect_func"] = guard.on_connect
    behind = SentinelUrl.parse(url)
    redis = Redis.from_url(url, **options) if behind is None else behind.connect(**options)
    if guard is not None:
        guard.pools.append(redis.connection_pool)
    return redis


def _fields(reply: bytes) -> dict[str, str]:
    lines = (line.partition(b":") for line in reply.splitlines() if b":" in line)
    return {name.decode(): value.decode() for name, _, value in lines}
