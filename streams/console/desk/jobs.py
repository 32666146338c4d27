"""Work that takes longer than a page may: begun by one request, looked at by those after it.

Promise: at most MOST_AT_ONCE run at a time, the last few results are kept for a while, and all end with the console. A
result is given to nobody but who began it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import Unreachable

log = logging.getLogger(__name__)

MOST_AT_ONCE = 2
MOST_KEPT = 64
KEPT_S = 600.0


@dataclass(slots=True)
class Job:
    """One piece of work. result: once it is done. fault: why it failed, for people. done, total: how far it is.

    is_told: who waits for it knows how it ended.
    """

    what: str
    done: int = 0
    total: int = 0
    result: Any = None
    fault: str | None = None
    is_over: bool = False
    is_told: bool = False
    ended_s: float = 0.0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def progress(self, _what: str, done: int, total: int) -> None:
        """As the scanners tell it."""
        self.done, self.total = done, total


Work = Callable[[Job], Awaitable[Any]]


class Jobs:
    """The work that is under way, and what was done."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, ...], Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    def find(self, *name: str) -> Job | None:
        """The job of a name, if it is known still."""
        self._forget()
        return self._jobs.get(name)

    def begin(self, *name: str, work: Work, anew: bool = False) -> Job:
        """Begin it, unless it is there. name: what it is, and whose. anew: though it is there, if it was told.

        What nobody was told of is not begun again: a page that is loaded anew while it reads would never be told.
        """
        found = self.find(*name)
        if found is not None and not (anew and found.is_told):
            return found
        job = self._jobs[name] = Job(name[0])
        task = asyncio.create_task(self._run(job, work), name=f"console {name[0]}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def wait(self, job: Job, seconds: float) -> Job:
        """Give it a moment: most are done in less than a page takes to be asked for again. Then tell of it."""
        try:
            async with asyncio.timeout(seconds):
                await job.ended.wait()
        except TimeoutError:
            pass  # it goes on
        job.is_told = job.is_over
        return job

    async def close(self) -> None:
        """End all of it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, job: Job, work: Work) -> None:
        try:
            async with self._slots:
                job.result = await work(job)
        except (CommandError, ConditionFailed, SettingsError, Unreachable) as err:
            job.fault = str(err)
        except Exception as err:
            log.exception("%s failed", job.what)
            job.fault = f"it failed ({type(err).__name__}); the log has more"
        finally:
            job.is_over, job.ended_s = True, time.monotonic()
            job.ended.set()

    def _forget(self) -> None:
        now = time.monotonic()
        over = [name for name, job in self._jobs.items() if job.is_over]
        old = [name for name in over if now - self._jobs[name].ended_s > KEPT_S]
        for name in {*old, *over[: max(0, len(over) - MOST_KEPT)]}:
            del self._jobs[name]
