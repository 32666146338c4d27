"""Signing in, slowed down for who fails: by address, and all together.

Promise: an address that failed some times waits, longer each time; however many addresses try, no more than so many
hashes are made at once, and who waits too long is told to come again. Nobody can lock another person out by name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ticketgate.streams.console.refusals import PageRefusal

# People mistype; programs go on.
FREE = 5
FIRST_WAIT_S, LONGEST_WAIT_S = 2.0, 300.0
# What failed is forgotten after so long without another.
FORGOTTEN_S = 900.0
MOST_ADDRESSES = 10_000
# A hash takes 16 MiB and a processor.
HASHES_AT_ONCE = 2
WAITING_AT_ONCE = 32


class Attempts:
    """Counts what failed. clock: seconds that only rise."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # By address: how many failed, and when the last did. The longest ago first.
        self._failed: dict[str, tuple[int, float]] = {}
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)
        self._waiting = 0

    @asynccontextmanager
    async def trying(self, client: str) -> AsyncIterator[None]:
        """Hold a place for one try. Raises PageRefusal for who has to wait."""
        failed, at = self._failed.get(network_of(client), (0, 0.0))
        if failed >= FREE:
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(failed - FREE, 20))
            if (left_s := at + wait_s - self._clock()) > 0:
                raise _wait(left_s)
        if self._waiting >= WAITING_AT_ONCE:
            raise _wait(FIRST_WAIT_S)
        self._waiting += 1
        try:
            async with self._hashing:
                yield
        finally:
            self._waiting -= 1

    def failed(self, client: str) -> None:
        """One more from there."""
        network, now = network_of(client), self._clock()
        count, at = self._failed.pop(network, (0, now))
        self._failed[network] = ((count if now - at < FORGOTTEN_S else 0) + 1, now)
        while len(self._failed) > MOST_ADDRESSES:
            del self._failed[next(iter(self._failed))]

    def succeeded(self, client: str) -> None:
        """That one is who it says."""
        self._failed.pop(network_of(client), None)


def network_of(client: str) -> str:
    """Whom an address belongs to: of IPv6 each has 2**64."""
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client
    return str(address) if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))


def _wait(left_s: float) -> PageRefusal:
    seconds = math.ceil(left_s)
    return PageRefusal(
        429,
        "Too many attempts to sign in.",
        next_step=f"Try again in {seconds} s.",
        retry_after_s=seconds,
    )
