"""One look-up made of two sources, which may be of different kinds."""

from dataclasses import dataclass
from typing import Protocol

from ticketgate.agents.funnel.evidence import Authority, World
from ticketgate.codecs.records.proposal import Proposal


class AuthoritySource(Protocol):
    """Says what an actor may do; raises as `Lookup` does."""

    async def authority(self, proposal: Proposal) -> Authority | None: ...

    async def close(self) -> None: ...


class WorldSource(Protocol):
    """Says how the world stands; raises as `Lookup` does."""

    async def world(self, proposal: Proposal) -> World: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SourcedLookup:
    """A `Lookup` of two sources. Lives in one event loop; `close` ends both."""

    authority_source: AuthoritySource
    world_source: WorldSource

    async def authority(self, proposal: Proposal) -> Authority | None:
        """What the authority's source says."""
        return await self.authority_source.authority(proposal)

    async def world(self, proposal: Proposal) -> World:
        """What the world's source says."""
        return await self.world_source.world(proposal)

    async def close(self) -> None:
        """Close both, the second also if the first cannot be closed."""
        try:
            await self.authority_source.close()
        finally:
            await self.world_source.close()
