"""Evidence over HTTP: GET for an actor's authority, POST of the request for the world.

Promise: what comes out is what the server said now, whole and strictly read. A server that is away or busy, or that
refuses our token, is waited for; any other answer than the agreed one is no evidence. No redirect is followed, since it
would carry the token to someone else, and no answer is read beyond a limit.
"""

from __future__ import annotations

from typing import Final

import aiohttp
from ticketgate.agents.funnel.evidence import Authority, EvidenceUnreadable, LookupUnavailable, World
from ticketgate.agents.funnel.lookups.reading import read_authority, read_world
from ticketgate.agents.funnel.lookups.template import Template
from ticketgate.codecs.proposal import Proposal
from ticketgate.codecs.strict import encode
from yarl import URL

# 429 too many requests, 503 not now; 502 and 504 are a proxy before a server that is away.
AWAY: Final = frozenset({429, 502, 503, 504})
# It is our token that is refused, whatever the case: no case's fault, and not one that a review could mend.
NOT_ADMITTED: Final = frozenset({401, 407})


class HttpAuthority:
    """GET of a URL with {actor_id} in it: 200 with an authority, or 404 for an actor of whom nothing is known."""

    def __init__(self, *, url: Template, timeout_s: float, max_bytes: int, token: str | None = None) -> None:
        self._url, self._max_bytes = url, max_bytes
        self._client = _Client(url.text, timeout_s=timeout_s, max_bytes=max_bytes, token=token)

    async def authority(self, proposal: Proposal) -> Authority | None:
        """What the server says of the request's actor."""
        # Encoding leaves dots as they are, and a server would climb by them: `/authority/..` is another place.
        if not proposal.request.actor_id.strip("."):
            raise EvidenceUnreadable("an actor_id of nothing but dots cannot stand in a URL")
        url = self._url.fill(proposal)
        if url is None:
            raise EvidenceUnreadable("the request binds no value that the URL names")
        status, body = await self._client.ask("GET", url)
        if status == 404:
            return None
        return read_authority(_good(status, body), proposal, max_bytes=self._max_bytes)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


class HttpWorld:
    """POST of tenant, case id and request: 200 with a world."""

    def __init__(self, *, url: str, timeout_s: float, max_bytes: int, token: str | None = None) -> None:
        self._url, self._max_bytes = url, max_bytes
        self._client = _Client(url, timeout_s=timeout_s, max_bytes=max_bytes, token=token)

    async def world(self, proposal: Proposal) -> World:
        """What the server says of the request."""
        asked = {
            "tenant": proposal.tenant,
            "case_id": proposal.case_id,
            "request": proposal.request.to_json(),
        }
        status, body = await self._client.ask("POST", self._url, encode(asked))
        return read_world(_good(status, body), max_bytes=self._max_bytes)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


class _Client:
    """A session with one server, opened when it is first asked. Lives in one event loop."""

    def __init__(self, name: str, *, timeout_s: float, max_bytes: int, token: str | None) -> None:
        self._name, self._timeout_s, self._max_bytes = name, timeout_s, max_bytes
        # A cache on the way must not answer: the second look is worth what it sees of this moment.
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Cache-Control": "no-cache",
        }
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body. Raises LookupUnavailable."""
        try:
            async with self._opened().request(
                method, URL(url, encoded=True), data=body, allow_redirects=False
            ) as response:
                content = await _limited(response, self._max_bytes)
        except TimeoutError as err:
            raise LookupUnavailable(f"{self._name}: no answer in {self._timeout_s:g} s") from err
        except (aiohttp.ClientError, OSError) as err:
            raise LookupUnavailable(f"{self._name}: no connection ({type(err).__name__})") from err
        if response.status in AWAY:
            raise LookupUnavailable(f"{self._name}: status {response.status}")
        if response.status in NOT_ADMITTED:
            raise LookupUnavailable(f"{self._name}: status {response.status}, the token is refused")
        return response.status, content

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A connection for each question: on one that is kept, an answer that came twice would answer the next.
                connector=aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            )
        return self._session


def _good(status: int, body: bytes) -> bytes:
    if status != 200:
        raise EvidenceUnreadable(f"status {status}, where 200 is expected")
    return body


async def _limited(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The body, or so much of it that the reader calls it too large."""
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > max_bytes:
            response.close()
            break
    return bytes(content)
