"""The watch over a worker's place in its group: that it stays a member, and that /readyz says so only while it is.

Promise: a worker that its group has not known for half a session is not ready, with the reason; one that its group has
not known for longer than a session and a rebalance take is brought back by a new consumer (`run` raises). Membership
is the worker's and not its lanes': no lane has to poll for it, so neither a standby without one nor a batch that takes
an hour loses its place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

from ticketgate.streams.lane.membership import Membership
from ticketgate.streams.lane.outside import Outside

# Well within aiokafka's limit on idle members, and within half of most sessions.
WATCH_S = 2.0
# A worker that is let in and not heard of is asked about as often as this: it takes a connection.
ASK_AGAIN_S = 5.0


class GroupWatch:
    """Watches one consumer. `on_known` and `on_unknown` are told at each look; `find_reason` asks why; `check` raises
    what else ends the membership."""

    def __init__(
        self,
        membership: Membership,
        *,
        group: str,
        session_s: float,
        rebalance_s: float,
        find_reason: Callable[[], Awaitable[Exception | None]],
        on_known: Callable[[], None],
        on_unknown: Callable[[Exception], None],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._membership = membership
        self._group = group
        self._session_s = session_s
        self._most_silent_s = session_s + rebalance_s
        self._find_reason = find_reason
        self._on_known = on_known
        self._on_unknown = on_unknown
        self._check = check
        self._every_s = min(WATCH_S, session_s / 5)
        # The silence counts from here at the earliest: the start, or a moment in which the process was stopped.
        self._counts_from = time.monotonic()
        self._asked_at = float("-inf")
        self._reason: Exception | None = None

    async def run(self) -> NoReturn:
        """Watch until cancelled. Raises what aiokafka tells of joining and staying, and after a silence that aiokafka
        should have ended by itself the reason, or `Outside`."""
        while True:
            await self._sleep()
            self._check()
            await self._membership.poll()
            await self._look()

    async def _sleep(self) -> None:
        due_at = time.monotonic() + self._every_s
        await asyncio.sleep(self._every_s)
        if time.monotonic() - due_at > self._session_s / 2:
            # It was stopped, and aiokafka has had no time to find out that it must join again.
            self._counts_from = time.monotonic()

    async def _look(self) -> None:
        if self._is_known:
            self._reason = None
            self._on_known()
            return
        heard_at = self._membership.heard_at
        since = self._counts_from if heard_at is None else max(heard_at, self._counts_from)
        silent_s = time.monotonic() - since
        if silent_s > self._most_silent_s:
            raise self._reason or Outside(self._group, silent_s)
        if heard_at is None and silent_s <= self._session_s / 2:
            return  # it has just asked to be let in
        if self._reason is None:
            # At once: asking why takes seconds where nobody answers.
            self._on_unknown(Outside(self._group, silent_s))
        if time.monotonic() - self._asked_at >= ASK_AGAIN_S:
            self._reason = await self._find_reason()
            self._asked_at = time.monotonic()
        if not self._is_known:
            self._on_unknown(self._reason or Outside(self._group, silent_s))

    @property
    def _is_known(self) -> bool:
        heard_at = self._membership.heard_at
        return heard_at is not None and time.monotonic() - heard_at <= self._session_s / 2
