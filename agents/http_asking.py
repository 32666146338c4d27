"""A server asked over HTTP, for evidence and for effects: a connection for each request, answers up to a limit.

Promise: an answer is that of this request and of this moment. No redirect is followed, since it would carry the token
and what is asked to someone else; no cookie is kept, no cache on the way may answer, and nothing is sent twice by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import aiohttp
from yarl import URL


class NoAnswer(Exception):
    """No whole answer came: no connection, or none in time. Nothing is said of whether the request arrived."""


class HttpAsker:
    """Lives in one event loop, and opens when it is first asked. `token`: sent as a bearer's."""

    def __init__(self, *, timeout_s: float, max_bytes: int, token: str | None) -> None:
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Cache-Control": "no-cache",
        }
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Status and body. A body beyond the limit ends somewhere behind it, so that a reader with the same limit
        refuses it. `url` is encoded already. Raises NoAnswer."""
        try:
            async with self._opened().request(
                method, URL(url, encoded=True), headers=headers, data=body, allow_redirects=False
            ) as response:
                return response.status, await _limited(response, self._max_bytes)
        except TimeoutError as err:
            raise NoAnswer(f"no answer in {self._timeout_s:g} s") from err
        except (aiohttp.ClientError, OSError) as err:
            raise NoAnswer(f"no connection ({type(err).__name__})") from err

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A connection for each request: on one that is kept, an answer that came twice would answer the next.
                # aiohttp asks a GET again by itself, which is harmless; a POST never.
                connector=aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                # Exactly: aiohttp would round times beyond 5 s up to a whole second, and what is taken for absent after
                # the settle time could still be on its way.
                timeout=aiohttp.ClientTimeout(total=self._timeout_s, ceil_threshold=math.inf),
            )
        return self._session


async def _limited(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > max_bytes:
            response.close()
            break
    return bytes(content)
