"""Evidence for the proposals of a batch, looked up side by side.

Promise: while nobody answers, /readyz says so and nothing is decided. See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ticketgate.agents.funnel.evidence import Evidence, Lookup, LookupUnavailable, look_up
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.streams.config.readiness import LOOKUP, Readiness

# Look-ups of a process that are under way at once.
MOST_LOOKUPS = 16


class Evidences:
    """Looks evidence up and tells /readyz while nobody answers; without a readiness it tells nobody."""

    def __init__(self, lookup: Lookup, readiness: Readiness | None) -> None:
        self._lookup, self._readiness = lookup, readiness
        self._slots = asyncio.Semaphore(MOST_LOOKUPS)

    def beside_lanes(self) -> Evidences:
        """The same for who keeps no lane waiting, and may ask again only after minutes."""
        return Evidences(self._lookup, None)

    async def of(self, proposals: Sequence[Proposal]) -> list[Evidence]:
        """The evidence of each, in order. Raises LookupUnavailable."""
        found = await asyncio.gather(*map(self._one, proposals), return_exceptions=True)
        evidence: list[Evidence] = []
        for each in found:
            if isinstance(each, LookupUnavailable) and self._readiness is not None:
                self._readiness.wait(LOOKUP, str(each))
            if isinstance(each, BaseException):
                raise each
            evidence.append(each)
        if proposals and self._readiness is not None:
            self._readiness.work(LOOKUP)
        return evidence

    async def _one(self, proposal: Proposal) -> Evidence:
        async with self._slots:
            return await look_up(proposal, self._lookup)
