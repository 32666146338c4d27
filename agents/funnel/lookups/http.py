"""Evidence over HTTP: GET for an actor's authority, POST of the request for the world.

Promise: what comes out is what the server said now, whole and strictly read. A server that is away or busy, or that
refuses our token, or answers nobody, is waited for; any other answer than the agreed one is no evidence. How it is
asked: asking.py.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from ticketgate.agents.funnel.evidence import Authority, EvidenceUnreadable, World
from ticketgate.agents.funnel.lookups.asking import NOT_FOUND, EvidenceServer
from ticketgate.agents.funnel.lookups.reading import read_authority, read_world
from ticketgate.agents.funnel.lookups.template import Template
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.values.strict import encode

_AUTHORITY_FIELDS: Final = tuple(each.name for each in fields(Authority))
_WORLD_FIELDS: Final = tuple(each.name for each in fields(World))


class HttpAuthority:
    """GET of a URL with {actor_id} in it: 200 with an authority, or 404 for an actor of whom nothing is known."""

    def __init__(self, *, url: Template, timeout_s: float, max_bytes: int, token: str | None = None) -> None:
        self._url, self._max_bytes = url, max_bytes
        self._client = EvidenceServer(
            url.text,
            timeout_s=timeout_s,
            max_bytes=max_bytes,
            token=token,
            fields=_AUTHORITY_FIELDS,
            may_be_empty=False,
        )

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
        status, body = await self._client.ask("GET", url, may_be_unknown=True)
        if status == NOT_FOUND:
            return None
        return read_authority(_good(status, body), proposal, max_bytes=self._max_bytes)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


class HttpWorld:
    """POST of tenant, case id and request: 200 with a world."""

    def __init__(self, *, url: str, timeout_s: float, max_bytes: int, token: str | None = None) -> None:
        self._url, self._max_bytes = url, max_bytes
        self._client = EvidenceServer(
            url,
            timeout_s=timeout_s,
            max_bytes=max_bytes,
            token=token,
            fields=_WORLD_FIELDS,
            may_be_empty=True,
        )

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


def _good(status: int, body: bytes) -> bytes:
    if status != 200:
        raise EvidenceUnreadable(f"status {status}, where 200 is expected")
    return body
