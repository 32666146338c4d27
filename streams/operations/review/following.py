"""The view kept up to date for as long as a process lives, by a thread of its own.

Promise: what was written is in the view within a second while the broker answers. Whatever fails is told in `state` and
tried again; a file that was taken away, or that is broken, is made anew. Who reads opens the file for himself, once
`generation` says that there is one, and anew whenever it has grown.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aiokafka import TopicPartition
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.kafka.reading.scanning import Scanner, open_scanner
from ticketgate.streams.operations.review.feeding import (
    catch_up,
    find_source,
    forget_the_old,
    open_fitting,
)
from ticketgate.streams.operations.review.tables import ViewReplaced, is_broken, take_away
from ticketgate.streams.operations.review.view import View

log = logging.getLogger(__name__)

# A person who waits for what became of a press looks at this.
LOOK_EVERY_S = 0.3
# Topics are made anew, get partitions and forget in minutes.
ANEW_EVERY_S = 60.0
AFTER_FAULT_S = 2.0
STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class FollowState:
    """How the view stands. generation: grows with each file, 0 before the first. about: whose the file is.
    is_current: whether all that was written when last looked is in it. done, total: records of what is taken in now.
    fault: why nothing is taken in, or None."""

    generation: int = 0
    about: Mapping[str, str] | None = None
    is_current: bool = False
    done: int = 0
    total: int = 0
    fault: str | None = None


class Following:
    """Follows the topics. on_news: called in the loop that started it, whenever the view or the state has changed."""

    def __init__(self, settings: Settings, path: Path, *, on_news: Callable[[], None]) -> None:
        self._settings, self._path, self._on_news = settings, path, on_news
        self.state = FollowState()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="review view", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to follow."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Follow no longer."""
        self._stop.set()
        await asyncio.to_thread(self._thread.join, STOP_TIMEOUT_S)

    def _tell(self, **changes: object) -> None:
        before, self.state = self.state, replace(self.state, **changes)  # type: ignore[arg-type]  # each by its name
        if before != self.state:
            self._announce()

    def _announce(self) -> None:
        if self._loop is not None and not self._stop.is_set():
            self._loop.call_soon_threadsafe(self._on_news)

    def _run(self) -> None:
        asyncio.run(self._follow())

    async def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                async with open_scanner(self._settings) as scanner:
                    await self._follow_one(scanner)
                continue
            except ViewReplaced:
                continue  # by a command, or by another of us: opened again
            except (Unreachable, ConditionFailed, SettingsError, CommandError) as err:
                self._tell(fault=str(err), is_current=False)
            except sqlite3.DatabaseError as err:
                self._tell(fault=f"{self._path}: {err}", is_current=False)
                if is_broken(err):
                    # It holds nothing that the topics have not.
                    take_away(self._path)
            except OSError as err:
                self._tell(fault=f"{self._path}: cannot be written ({err.strerror})", is_current=False)
            except Exception as err:
                # The thread must outlive a fault of ours: without it all pages would tell of the past.
                log.exception("following the topics failed")
                self._tell(fault=f"following failed: {type(err).__name__}", is_current=False)
            await self._pause(AFTER_FAULT_S)

    async def _follow_one(self, scanner: Scanner) -> None:
        """One file, until it is another's or it is time to look at the topics anew."""
        source = await find_source(self._settings, scanner)
        with open_fitting(self._settings, self._path, source, await scanner.extents(source.places)) as view:
            identity = _identity(self._path)
            if view.was_made or self.state.about != source.about:
                self._tell(generation=self.state.generation + 1, about=source.about, is_current=False)
            forget_the_old(self._settings, view)
            await self._catch_up_until_due(scanner, view, source.places, identity)

    async def _catch_up_until_due(
        self, scanner: Scanner, view: View, places: Sequence[TopicPartition], identity: int | None
    ) -> None:
        clock = asyncio.get_running_loop().time
        end = clock() + ANEW_EVERY_S
        while clock() < end and not self._stop.is_set() and _identity(self._path) == identity is not None:
            had_news = await catch_up(self._settings, scanner, view, places, progress=self._progress)
            self._tell(is_current=True, fault=None, done=0, total=0)
            if had_news:
                self._announce()
            await self._pause(LOOK_EVERY_S)

    def _progress(self, _what: str, done: int, total: int) -> None:
        if not self.state.is_current:
            self._tell(done=done, total=total, fault=None)

    async def _pause(self, seconds: float) -> None:
        await asyncio.to_thread(self._stop.wait, seconds)


def _identity(path: Path) -> int | None:
    """By which a file is known that another took the place of."""
    try:
        return path.stat().st_ino
    except OSError:
        return None
