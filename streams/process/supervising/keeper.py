"""One place for a process: whoever holds it is started again when it ends, after a while, until the place is closed.

Promise: no end of a process ends its keeper, and nothing of one keeper reaches another. A process that ended
because it was refused (exit code 2) is tried again too, for its files may be mended; `is_refused` says so meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from ticketgate.streams.process.supervising.backoff import Backoff
from ticketgate.streams.process.supervising.child import Child, how_it_ended

log = logging.getLogger(__name__)

# A bad setting, policy, model or funnel file: starting again changes nothing until a person does.
EXIT_REFUSED = 2

State = Literal["runs", "waits", "closed"]


class Keeper:
    """Keeps a process of one name. start: starts one, and may raise OSError. ended: told after each end."""

    def __init__(
        self,
        name: str,
        *,
        start: Callable[[], Awaitable[Child]],
        ended: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._start, self._ended, self._clock = start, ended, clock
        self._backoff = backoff or Backoff()
        self._child: Child | None = None
        self._closing = asyncio.Event()
        self._ready_at: float | None = None
        self._next_at = 0.0
        self._end = ""
        self.state: State = "waits"
        self.starts = 0
        """How many processes were started here: each has a number of its own."""
        self.is_refused = False
        """Whether the last one ended as refused, and none has been ready since."""

    @property
    def pid(self) -> int | None:
        """The id of the process that runs, None where none does."""
        return None if self._child is None else self._child.pid

    @property
    def restarts(self) -> int:
        """How often one was started after the first."""
        return max(0, self.starts - 1)

    def seen_ready(self) -> None:
        """The process that runs says that it is ready."""
        if self._ready_at is None:
            self._ready_at = self._clock()
            self.is_refused = False

    def why_not(self) -> str:
        """Why no process runs here; empty where one does, unless it ended too often before."""
        if self.state == "closed":
            return "ended"
        often = f", {self._backoff.ends} times in a row" if self._backoff.ends > 1 else ""
        if self.state == "waits":
            wait_s = max(0.0, self._next_at - self._clock())
            return f"ended {self._end}{often}; starts again in {wait_s:.0f} s" if self._end else "starting"
        return (
            f"ended {self._end}{often}; started again" if self._backoff.is_loop and not self._ready_at else ""
        )

    async def run(self) -> None:
        """Start, and start again, until `close`; then until the last one has ended."""
        try:
            while not self._closing.is_set():
                wait_s = await self._once()
                if wait_s is None or self._closing.is_set():
                    return
                self._next_at, self.state = self._clock() + wait_s, "waits"
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._closing.wait()
        finally:
            self.state = "closed"

    def close(self) -> None:
        """Have the process drain, and start none any more."""
        self._closing.set()
        if self._child is not None:
            self._child.drain()

    def end_now(self) -> None:
        """Have the process end at once, where one runs."""
        if self._child is not None:
            self._child.end_now()

    def kill(self) -> None:
        """SIGKILL, where a process runs."""
        if self._child is not None:
            self._child.kill()

    def hang_up(self) -> None:
        """SIGHUP, where a process runs."""
        if self._child is not None:
            self._child.hang_up()

    async def _once(self) -> float | None:
        """Run one process to its end; how long to wait before the next."""
        self._ready_at = None
        self.starts += 1
        try:
            child = await self._start()
        except OSError as err:
            return self._after(f"before it began ({err.strerror or err})", ready_s=None)
        self._child, self.state = child, "runs"
        log.info("%s runs as process %d", self.name, child.pid)
        if self._closing.is_set():
            child.drain()
        try:
            code = await child.wait()
        finally:
            self._child = None
        if self._closing.is_set():
            log.info("%s (process %d) ended %s", self.name, child.pid, how_it_ended(code))
            return None
        self.is_refused = code == EXIT_REFUSED
        ready_s = None if self._ready_at is None else self._clock() - self._ready_at
        wait_s = self._after(how_it_ended(code), ready_s=ready_s)
        self._ended()
        return wait_s

    def _after(self, end: str, *, ready_s: float | None) -> float:
        wait_s, self._end = self._backoff.next_s(ready_s=ready_s), end
        if self._backoff.is_loop:
            log.error(
                "%s ended %s, %d times in a row; look at what it said; starting it again in %.1f s",
                *(self.name, end, self._backoff.ends, wait_s),
                extra={"cause": (self.name, end)},
            )
        else:
            log.warning("%s ended %s; starting it again in %.1f s", self.name, end, wait_s)
        return wait_s
