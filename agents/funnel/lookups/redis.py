"""Evidence in Redis: one key an actor, one key a request, each a JSON text.

Promise: a key that is not there is nobody known, or a world without facts; neither lets anything pass. A Redis that is
away is waited for. Relies on: whoever writes the keys writes them whole, by one SET.
"""

from __future__ import annotations

from datetime import timedelta

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError
from ticketgate.agents.funnel.evidence import Authority, EvidenceUnreadable, LookupUnavailable, World
from ticketgate.agents.funnel.lookups.reading import read_authority, read_world
from ticketgate.agents.funnel.lookups.template import Template
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.store.connect import connect


class RedisAuthority:
    """GET of a key with {actor_id} in it."""

    def __init__(self, *, url: str, key: Template, timeout_s: float, max_bytes: int) -> None:
        self._redis = connect(url, timeout=timedelta(seconds=timeout_s))
        self._key, self._max_bytes = key, max_bytes

    async def authority(self, proposal: Proposal) -> Authority | None:
        """What stands under the actor's key; None if nothing does."""
        found = await _get(self._redis, self._key, proposal)
        return None if found is None else read_authority(found, proposal, max_bytes=self._max_bytes)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


class RedisWorld:
    """GET of a key that the request names."""

    def __init__(self, *, url: str, key: Template, timeout_s: float, max_bytes: int) -> None:
        self._redis = connect(url, timeout=timedelta(seconds=timeout_s))
        self._key, self._max_bytes = key, max_bytes

    async def world(self, proposal: Proposal) -> World:
        """What stands under the request's key; no facts if nothing does."""
        found = await _get(self._redis, self._key, proposal)
        return World() if found is None else read_world(found, max_bytes=self._max_bytes)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


async def _get(redis: Redis, template: Template, proposal: Proposal) -> bytes | None:
    key = template.fill(proposal)
    if key is None:
        return None
    try:
        found = await redis.get(key)
    except ResponseError as err:
        # The other refusals (loading, no authentication, a replica without its primary) pass or are the operator's.
        if str(err).startswith("WRONGTYPE"):
            raise EvidenceUnreadable("the key holds no text") from err
        raise LookupUnavailable(f"Redis refuses: {err}") from err
    except (RedisError, OSError) as err:
        raise LookupUnavailable(f"no Redis answers ({type(err).__name__})") from err
    return found.encode() if isinstance(found, str) else found
