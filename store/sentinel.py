"""Redis behind Sentinels: its URL, a client for the primary that they name, and what they know of its replicas.

    redis+sentinel://[user:password@]host[:port],host[:port]/service[/db][?sentinel_username=…&sentinel_password=…]

User and password are Redis' own. rediss+sentinel means TLS, to Redis and to the Sentinels; options that begin with
`ssl_` are redis-py's. Promise: each new connection asks the Sentinels anew where the primary is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from redis.asyncio import Redis
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.exceptions import RedisError

SCHEMES = ("redis+sentinel", "rediss+sentinel")
_PORT = 26379


def split_url(url: str) -> SplitResult:
    """As urlsplit, for a list of Sentinels too: some Pythons refuse brackets that do not stand around one whole host.
    Raises ValueError."""
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        return urlsplit(url)
    hosts, _, _ = rest.replace("?", "/", 1).replace("#", "/", 1).partition("/")
    return urlsplit(f"{scheme}://hosts{rest[len(hosts) :]}")._replace(netloc=hosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelUrl:
    """The URL, read."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    db: int
    username: str | None
    password: str | None
    sentinel_username: str | None
    sentinel_password: str | None
    tls: Mapping[str, Any]

    @classmethod
    def parse(cls, url: str) -> SentinelUrl | None:
        """None for a URL of another scheme. Raises ValueError."""
        parts = split_url(url)
        if parts.scheme not in SCHEMES:
            return None
        user, _, hosts = parts.netloc.rpartition("@")
        username, _, password = user.partition(":")
        service, _, db = parts.path.strip("/").partition("/")
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        known = {"sentinel_username", "sentinel_password"}
        unknown = sorted(name for name in asked if name not in known and not name.startswith("ssl_"))
        if not hosts or not service or (db and not db.isdigit()):
            raise ValueError("a Sentinel URL is redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB")
        if unknown:
            raise ValueError(f"unknown option {unknown[0]!r} in the Sentinel URL")
        tls = {name: value for name, value in asked.items() if name.startswith("ssl_")}
        return cls(
            sentinels=tuple(_address(each) for each in hosts.split(",")),
            service=unquote(service),
            db=int(db or "0"),
            username=unquote(username) or None,
            password=unquote(password) or None,
            sentinel_username=asked.get("sentinel_username"),
            sentinel_password=asked.get("sentinel_password"),
            tls={"ssl": True, **tls} if parts.scheme.startswith("rediss") else {},
        )

    def connect(self, **options: Any) -> Redis:
        """A client for the primary; `options` are those of its connections. Nothing is sent yet."""
        master: Redis = self._sentinel(options).master_for(
            self.service,
            connection_pool_class=_ClosingPool,
            db=self.db,
            username=self.username,
            password=self.password,
            **self.tls,
            **options,
        )
        return master

    async def known_replicas(self, *, timeout: timedelta) -> int:
        """How many replicas the Sentinels know, reachable or not: each of them may be promoted. The most that one of
        them tells; 0 if none answers, which is not for this to say."""
        seconds = timeout.total_seconds()
        found = 0
        manager = self._sentinel(
            {"socket_timeout": seconds, "socket_connect_timeout": seconds, "protocol": 2}
        )
        try:
            for each in manager.sentinels:
                try:
                    found = max(found, len(await each.sentinel_slaves(self.service)))
                except RedisError:
                    continue
        finally:
            await manager.aclose()
        return found

    def _sentinel(self, options: Mapping[str, Any]) -> Sentinel:
        # The question for the server's identity is one to Redis.
        plain = {name: value for name, value in options.items() if name != "redis_connect_func"}
        login = {"username": self.sentinel_username, "password": self.sentinel_password}
        return Sentinel(  # type: ignore[no-untyped-call]  # redis-py has no type for it
            list(self.sentinels), sentinel_kwargs={**plain, **self.tls, **login}
        )


class _ClosingPool(SentinelConnectionPool):
    """Closes its Sentinels' connections with its own."""

    async def aclose(self) -> None:
        await super().aclose()
        await self.sentinel_manager.aclose()


def _address(text: str) -> tuple[str, int]:
    host, colon, port = ("", "", "") if text.endswith("]") else text.rpartition(":")
    if not colon:
        host, port = text, str(_PORT)
    if not host or not port.isdigit():
        raise ValueError(f"{text!r} is no HOST:PORT of a Sentinel")
    return host.strip("[]"), int(port)
