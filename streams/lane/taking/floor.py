"""Who works in this process: lanes beside each other, or one record alone.

Promise: while one is `alone`, nobody works `beside` it, and they have their turns in the order in which they came: a
death while a record was alone is not another lane's doing, and a lane that takes one after another alone keeps nobody
waiting for more than one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Floor:
    """One process' floor."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._working = 0
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Work, once nobody is alone."""
        async with self._turn:
            self._working += 1
            self._is_empty.clear()
        try:
            yield
        finally:
            self._working -= 1
            if not self._working:
                self._is_empty.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Work alone, once all others are done; who comes meanwhile waits."""
        async with self._turn:
            await self._is_empty.wait()
            yield
