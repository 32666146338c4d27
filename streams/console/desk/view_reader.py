"""The view as pages read it: in a thread of its own, from the file that is followed.

Promise: no page waits for a file that is written, nor holds up another for longer than its own question takes. Before
there is a file, and while it is made anew, questions raise `ViewNotThere`, which the pages tell of.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, TypeVar

from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.operations.review.following import FollowState
from ticketgate.streams.operations.review.view import View

T = TypeVar("T")


class Follows(Protocol):
    """Who keeps the view up to date (operations/review/following.py)."""

    state: FollowState

    def start(self) -> None:
        """Begin to follow."""
        ...

    async def stop(self) -> None:
        """Follow no longer."""
        ...


class ViewNotThere(Exception):
    """There is no view to read yet, or no longer; it is being made."""


class ViewReader:
    """Asks the view that `following` keeps."""

    def __init__(self, path: Path, following: Follows, *, claim_ttl_ms: int) -> None:
        self._path, self._following, self._ttl_ms = path, following, claim_ttl_ms
        # SQLite's connections belong to the thread that opened them.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="view reader")
        self._view: View | None = None
        self._generation = 0

    async def ask(self, question: Callable[[View], T]) -> T:
        """The answer to a question. Raises `ViewNotThere`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, question)

    async def close(self) -> None:
        """Let go of the file."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._let_go)
        self._thread.shutdown()

    def _ask(self, question: Callable[[View], T]) -> T:
        state = self._following.state
        if state.about is None or not self._path.exists():
            self._let_go()
            raise ViewNotThere
        try:
            if self._view is None or self._generation != state.generation:
                self._let_go()
                self._view = View(self._path, about=state.about, claim_ttl_ms=self._ttl_ms)
                self._generation = state.generation
            return question(self._view)
        except (sqlite3.DatabaseError, CommandError) as err:
            self._let_go()
            raise ViewNotThere from err

    def _let_go(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            view.close()
