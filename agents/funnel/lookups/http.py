"""Evidence over HTTP: GET for an actor's authority, POST of the request for the world.

Promise: what comes out is what the server said now, whole and strictly read. A server that is away or busy, or that
refuses our token, is waited for; any other answer than the agreed one is no evidence. How it is asked:
agents/http_asking.py.
"""

from __future__ import annotations

from typing import Final

from ticketgate.agents.funnel.evidence import Authority, EvidenceUnreadable, LookupUnavailable, World
from ticketgate.agents.funnel.lookups.reading import read_authority, read_world
from ticketgate.agents.funnel.lookups.template import Template
from ticketgate.agents.http_asking import HttpAsker, NoAnswer
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.values.redact import redact
from ticketgate.codecs.values.strict import encode

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
        request = proposal.request
        for name, part in (
            ("actor_id", request.actor_id),
            ("operation", request.operation),
            ("tenant", proposal.tenant),
        ):
            if name in self._url.places and part and not part.strip("."):
                raise EvidenceUnreadable(f"a part of nothing but dots cannot stand in a URL: {name}")
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
    """One server. What keeps it from answering is waited for."""

    def __init__(self, name: str, *, timeout_s: float, max_bytes: int, token: str | None) -> None:
        self._name = redact(name)
        self._asker = HttpAsker(timeout_s=timeout_s, max_bytes=max_bytes, token=token)

    async def ask(self, method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body. Raises LookupUnavailable."""
        try:
            status, content = await self._asker.ask(method, url, body=body)
        except NoAnswer as err:
            raise LookupUnavailable(f"{self._name}: {err}") from err
        if status in AWAY:
            raise LookupUnavailable(f"{self._name}: status {status}")
        if status in NOT_ADMITTED:
            raise LookupUnavailable(f"{self._name}: status {status}, the token is refused")
        return status, content

    async def close(self) -> None:
        await self._asker.close()


def _good(status: int, body: bytes) -> bytes:
    if status != 200:
        raise EvidenceUnreadable(f"status {status}, where 200 is expected")
    return body
