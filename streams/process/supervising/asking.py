"""Asks the pages of one process, over its socket.

Promise: who asks waits no longer than it says; a process that is not there, or ends meanwhile, is `None`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from multidict import CIMultiDict

# A worker answers its pages at once, unless its loop is busy with a batch of large tickets.
ASK_S = 2.0
_HOST = "http://worker"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process answered."""

    status: int
    reason: str | None
    headers: CIMultiDict[str]
    body: bytes


class Door:
    """The pages of one process. Used from one event loop. under_way: how many requests wait for its answer."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._session: aiohttp.ClientSession | None = None
        self.under_way = 0

    async def get(self, path: str) -> Answer | None:
        """A page."""
        try:
            async with asyncio.timeout(ASK_S):
                return await self.ask("GET", path)
        except TimeoutError:
            return None

    async def ask(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer | None:
        """The answer to any request, in whatever time it takes. path: with its query, as it came."""
        self.under_way += 1
        try:
            async with self._opened().request(
                method,
                f"{_HOST}{path}",
                headers=headers,
                data=body,
                allow_redirects=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            ) as response:
                content = await response.read()
                return Answer(response.status, response.reason, response.headers.copy(), content)
        except (aiohttp.ClientError, OSError):
            return None
        finally:
            self.under_way -= 1

    def _opened(self) -> aiohttp.ClientSession:
        # In the loop in which it is used. A connection each, for one that the process closes meanwhile fails a request.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(path=str(self._socket), force_close=True, limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    async def close(self) -> None:
        """Ask nothing more."""
        if self._session is not None:
            await self._session.close()
