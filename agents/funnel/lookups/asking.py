"""One server of evidence, asked over HTTP: what keeps it from answering is waited for, and no case suffers for it.

Promise: an answer that is none (a page, an empty body, an error object, a status) is the case's own only if the server,
asked for it twice, answers another request well afterwards: one of the last that it answered well, asked again. A 404
is also, where nothing else was answered. Evidence is only read, so that asking again changes nothing. A server that has
answered nobody well yet is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from ticketgate.agents.funnel.evidence import LookupUnavailable
from ticketgate.agents.http_asking import HttpAsker, NoAnswer
from ticketgate.codecs.values.redact import redact
from ticketgate.codecs.values.strict import Malformed, decode

# 429 too many requests, 503 not now; 502 and 504 are a proxy before a server that is away.
AWAY: Final = frozenset({429, 502, 503, 504})
# It is our token that is refused, whatever the case: no case's fault, and not one that a review could mend.
NOT_ADMITTED: Final = frozenset({401, 407})
NOT_FOUND: Final = 404

# So many requests that were answered well are remembered: of some the right may be withdrawn meanwhile.
MOST_GOOD: Final = 8
# Between the two times that a request is asked whose answer is none.
PAUSE_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, to be asked again."""

    method: str
    url: str
    body: bytes | None


class EvidenceServer:
    """One server. `fields`: of which an answer has at least one, or it is none. may_be_empty: or it has nothing."""

    def __init__(
        self,
        name: str,
        *,
        timeout_s: float,
        max_bytes: int,
        token: str | None,
        fields: Collection[str],
        may_be_empty: bool,
    ) -> None:
        self._name, self._max_bytes = redact(name), max_bytes
        self._fields, self._may_be_empty = frozenset(fields), may_be_empty
        self._asker = HttpAsker(timeout_s=timeout_s, max_bytes=max_bytes, token=token)
        # The last requests that were answered well, the newest first.
        self._good: tuple[_Asked, ...] = ()
        self._probing = asyncio.Lock()
        # When the last probe began, and what it found.
        self._probed_at, self._probed = -1.0, ""

    async def ask(
        self, method: str, url: str, body: bytes | None = None, *, may_be_unknown: bool = False
    ) -> tuple[int, bytes]:
        """Status and body: an answer, or what stands in the place of one for this request alone.

        may_be_unknown: whether 404 says that nothing is known. Raises LookupUnavailable.
        """
        asked = _Asked(method, url, body)
        status, content = await self._once(asked)
        if self._is_answer(status, content):
            self._good = (asked, *self._others(asked))[:MOST_GOOD]
            return status, content
        if status == NOT_FOUND and may_be_unknown and not self._others(asked):
            # Nothing tells whether it is a page for everybody; so it is what it says. Whose right was withdrawn would
            # else hold all others up, where nobody else was asked for since.
            return status, content
        await asyncio.sleep(PAUSE_S)
        status, content = await self._once(asked)
        if not self._is_answer(status, content):
            await self._require_another_answer(asked, self._told(status, content))
        return status, content

    async def close(self) -> None:
        """Close the connections."""
        await self._asker.close()

    async def _once(self, asked: _Asked) -> tuple[int, bytes]:
        try:
            status, content = await self._asker.ask(asked.method, asked.url, body=asked.body)
        except NoAnswer as err:
            raise LookupUnavailable(f"{self._name}: {err}") from err
        if status in AWAY:
            raise LookupUnavailable(f"{self._name}: status {status}")
        if status in NOT_ADMITTED:
            raise LookupUnavailable(f"{self._name}: status {status}, the token is refused")
        if 300 <= status < 400:
            raise LookupUnavailable(
                f"{self._name}: status {status}, where 200 is expected; no redirect is followed"
            )
        return status, content

    async def _require_another_answer(self, asked: _Asked, told: str) -> None:
        """Raises LookupUnavailable unless the server answers another request well, asked from now on."""
        others = self._others(asked)
        if not others:
            raise LookupUnavailable(f"{self._name}: {told}, and it has answered nothing else so far")
        after = asyncio.get_running_loop().time()
        async with self._probing:
            # Who waited for the probe of another has its result: all failed at the same time.
            if self._probed_at < after:
                self._probed_at = asyncio.get_running_loop().time()
                for good in others:
                    self._probed = await self._probe(good)
                    if not self._probed:
                        break
            if self._probed:
                raise LookupUnavailable(
                    f"{self._name}: {told}, and {self._probed} to what it answered before"
                )

    def _others(self, asked: _Asked) -> tuple[_Asked, ...]:
        """The last requests that were answered well but for this one."""
        return tuple(each for each in self._good if each != asked)

    async def _probe(self, good: _Asked) -> str:
        """What is wrong with the answer to a request that was answered well; nothing, if it is again."""
        try:
            status, content = await self._once(good)
        except LookupUnavailable as err:
            return str(err)
        return "" if self._is_answer(status, content) else self._told(status, content)

    def _is_answer(self, status: int, content: bytes) -> bool:
        value = decode(content, max_bytes=self._max_bytes) if status == 200 else None
        if not isinstance(value, dict):
            return False
        return not self._fields.isdisjoint(value) or (self._may_be_empty and not value)

    def _told(self, status: int, content: bytes) -> str:
        if status != 200:
            return f"status {status}"
        value = decode(content, max_bytes=self._max_bytes)
        return value.reason if isinstance(value, Malformed) else "200 with no evidence in it"
