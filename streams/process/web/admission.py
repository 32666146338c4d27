"""Who is let in to `/v1`: from where, as what, and how much at once.

Promise: a page of a foreign origin, or one that was led here by another name, gets nothing; all bodies together never
hold more than so many bytes; one key can neither take all places nor ask faster than its rate.
"""

from __future__ import annotations

import ipaddress
import math
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web
from ticketgate.streams.process.web.errors import refusal

JSON_TYPE = "application/json"
# Who may want a key's place again soon.
RETRY_AFTER_S = 1
# Beyond so many the oldest are forgotten: only valid keys have one, or nobody.
MOST_CALLERS = 4096


@dataclass(frozen=True, slots=True)
class Origins:
    """By which names this port may be asked, and by pages of which origins. hosts, origins: beyond its own.
    hosts_setting, origins_setting: by which they are set; None: by none, and there are no others."""

    bind: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    hosts_setting: str = "TICKETGATE_WEB_HOSTS"
    origins_setting: str | None = "TICKETGATE_WEB_ORIGINS"

    def require(self, request: web.Request) -> None:
        """Raises the refusal of a request that names another host, or comes from another origin."""
        host = _name_of(request.headers.get("Host", ""))
        if host is None or not self._is_own(host):
            what = f"this server does not go by that Host; {self.hosts_setting} names further ones"
            raise refusal(421, "api_usage_error", what)
        origin = request.headers.get("Origin")
        if origin is None or origin in self.origins:
            return
        if _place_of(origin).lower() != request.headers.get("Host", "").lower():
            remedy = f"; {self.origins_setting} names those that may" if self.origins_setting else ""
            raise refusal(403, "api_usage_error", f"pages of that Origin may not ask{remedy}")

    def _is_own(self, host: str) -> bool:
        # An address cannot be made to lead elsewhere, as a name can.
        known = {"localhost", self.bind.lower(), socket.gethostname().lower(), *map(str.lower, self.hosts)}
        return host in known or _is_address(host)


def require_json(request: web.Request) -> None:
    """Raises the 415 of a body that does not say that it is JSON: a page may send any other without asking first."""
    if request.content_type != JSON_TYPE or "Content-Type" not in request.headers:
        raise refusal(415, "api_usage_error", f"send the body as Content-Type: {JSON_TYPE}")


class Admission:
    """Counts what is under way. most_bytes: of all bodies together; most_of_one: requests of one key at once;
    rate: requests a second of one key; None for any. `clock`: seconds that only rise."""

    def __init__(
        self,
        *,
        most_bytes: int,
        most_of_one: int | None = None,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_bytes, self._most_of_one, self._rate, self._clock = most_bytes, most_of_one, rate, clock
        self._bytes = 0
        self._under_way: Counter[bytes] = Counter()
        # By key: how many it may ask at once, and when that was so.
        self._allowance: dict[bytes, tuple[float, float]] = {}

    @contextmanager
    def enter(self, caller: bytes | None, size: int) -> Iterator[None]:
        """Hold a place for a body of `size` bytes. Raises the refusal if there is none. caller: its key, if any."""
        if caller is not None:
            self._require_rate(caller)
            if self._most_of_one is not None and self._under_way[caller] >= self._most_of_one:
                what = f"{self._most_of_one} requests of this key are under way already"
                raise refusal(429, "rate_limit_error", what, retry_after=str(RETRY_AFTER_S))
        if self._bytes + size > self._most_bytes:
            what = "the bodies of other requests fill the room that there is for them"
            raise refusal(503, "overloaded_error", what, retry_after=str(RETRY_AFTER_S))
        self._bytes += size
        if caller is not None:
            self._under_way[caller] += 1
        try:
            yield
        finally:
            self._bytes -= size
            if caller is not None:
                self._under_way[caller] -= 1
                if not self._under_way[caller]:
                    del self._under_way[caller]

    def _require_rate(self, caller: bytes) -> None:
        if self._rate is None:
            return
        most = max(1.0, self._rate)
        now = self._clock()
        left, at = self._allowance.pop(caller, (most, now))
        left = min(most, left + (now - at) * self._rate)
        self._allowance[caller] = (left - 1 if left >= 1 else left, now)
        while len(self._allowance) > MOST_CALLERS:
            del self._allowance[next(iter(self._allowance))]
        if left < 1:
            wait_s = math.ceil((1 - left) / self._rate)
            what = f"this key may ask {self._rate:g} times a second"
            raise refusal(429, "rate_limit_error", what, retry_after=str(max(1, wait_s)))


def _place_of(origin: str) -> str:
    """The host and port that an origin names; empty for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _name_of(host: str) -> str | None:
    """The host's name without its port; None of what is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and "@" not in host else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def room_for(declared: int | None, most: int) -> int:
    """What to hold for a body: what it says, or as much as it may have."""
    return most if declared is None else min(declared, most)
