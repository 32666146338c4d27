"""Who owns an idempotency key: the claims, one Redis string each, bound to the coordinate of a record.

Promise: a key maps to at most one coordinate for as long as its claim lives, and changes only from a void one.
A claim is no lease: it belongs to the coordinate and not to the worker, so whoever serves the partition next
finds its own claims and goes on. The mark that says how far keys were claimed is raised last of all, so that a Redis
which lost the end of its log shows it. Relies on: a Redis that forgets nothing (conditions.py), and the lane's token
(tokens.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey, collision_key
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import mark_committed, raise_claimed_as
from ticketgate.store.lane_state.underway import UnderWay, queue_note
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.lane_state.witnesses import Witness, write_as
from ticketgate.store.script import Script
from ticketgate.store.server_scripts import SOUND
from ticketgate.store.tokens import GUARD, LaneToken

# Returns for each claim the value that stood before, '' for none. The mark is raised here if no key belongs to another
# record; else there is more to write, and the mark comes after that.
_CLAIM = Script(
    "claim",
    """
local found, is_clear = {}, true
for i, claim in ipairs(claims) do
  local value = values[i]
  local owner = redis.call('SET', claim, value, 'NX', 'GET', 'PX', lifetime_ms)
  if owner and owner ~= value then is_clear = false end
  found[i] = owner or ''
end
if is_clear and tonumber(redis.call('GET', mark) or '-1') < tonumber(claimed) then
  redis.call('SET', mark, claimed)
end
return found
""",
    after=[GUARD, SOUND],
    keys=["mark"],
    more_keys="claims",
    arguments=["claimed", "lifetime_ms"],
    more_arguments="values",
)

# Returns the value that stands afterwards, so that the loser of a race learns who won.
_TAKE_OVER = Script(
    "take over",
    """
local found = redis.call('GET', claim)
if found == false or found == void_value then
  redis.call('SET', claim, value, 'PX', lifetime_ms)
  return value
end
return found
""",
    after=[GUARD, SOUND],
    keys=["claim"],
    arguments=["void_value", "value", "lifetime_ms"],
)

# Two lanes may both take over what a third left void; each round has one winner, and only a void winner needs another.
MOST_TAKE_OVERS = 8


@dataclass(frozen=True, slots=True)
class Claim:
    """A key, the record that wants it, and what that record says."""

    key: IdempotencyKey
    coordinate: Coordinate
    fingerprint: Fingerprint

    def encode(self) -> str:
        """`topic:partition:offset:fingerprint`, the value in Redis."""
        return f"{self.coordinate}:{self.fingerprint}"

    def for_collision(self) -> Claim:
        """The claim on the derived key, under which a collision is told of once however often it is sent."""
        return replace(self, key=collision_key(self.key, self.fingerprint))


@dataclass(frozen=True, slots=True)
class Owned:
    """The record owns its key: it had no owner, this very record claimed it before, or its owner was void."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The key belongs to another record that says the same; this one has no effect of its own."""

    owner: Coordinate


@dataclass(frozen=True, slots=True)
class Collision:
    """The key belongs to another record that says something else; this record owns the derived key."""

    owner: Coordinate
    fingerprint: Fingerprint


ClaimResult = Owned | Duplicate | Collision


class ClaimsContested(Exception):
    """Void claims went from one void record to the next, again and again. Nothing is decided on; the lane reopens."""


class Claims:
    """The claims of one namespace.

    `ttl` is how long a claim lives; `durability` says where it must be before it counts.
    """

    def __init__(self, redis: Redis, keys: Keys, *, ttl: timedelta, durability: Durability) -> None:
        self._redis = redis
        self._keys = keys
        self._voids = Voids(redis, keys)
        self._ttl_ms = round(ttl.total_seconds() * 1000)
        self._durability = durability

    async def claim(
        self,
        claims: Sequence[Claim],
        *,
        token: LaneToken,
        claimed: int,
        under_way: UnderWay | None = None,
        witness: Witness | None = None,
    ) -> tuple[ClaimResult, ...]:
        """Claim a batch's keys, in one round trip where none belongs to another record, and raise the lane's mark to
        `claimed`, one past the batch's last offset. `under_way`: what the lane does from here on. `witness`: the record
        at the batch's last offset.

        Returns one result a claim, in order. Raises `Superseded`, `LookAgain`, `ClaimsNotDurable` and redis-py's
        errors: nothing may be emitted then.
        """
        found = await self._claim_all(claims, token, claimed, under_way, witness)
        results = [_read(claim, owner) for claim, owner in zip(claims, found, strict=True)]
        if all(isinstance(result, Owned) for result in results):
            return tuple(results)
        before = list(results)
        await self._take_over_voids(claims, results, token)
        await self._claim_collisions(claims, results, token)
        # Plain duplicates wrote nothing of their own: a batch with one does not wait for the disk.
        wrote_more = results != before or any(isinstance(result, Collision) for result in before)
        async with self._redis.pipeline(transaction=False) as pipeline:
            raise_claimed_as(pipeline, token, self._keys, claimed)
            await self._durability.execute(pipeline, self._keys, is_rare=wrote_more)
        return tuple(results)

    async def mark_committed(self, token: LaneToken, offset: int, witness: Witness | None = None) -> None:
        """See `marks.mark_committed`."""
        await mark_committed(self._redis, self._keys, token, offset, witness)

    async def show(self, key: IdempotencyKey) -> str | None:
        """The claim on a key as it stands, `topic:partition:offset:fingerprint`, or None."""
        found = await self._redis.get(self._keys.claim(key))
        return None if found is None else cast("bytes", found).decode()

    async def _claim_all(
        self,
        claims: Sequence[Claim],
        token: LaneToken,
        claimed: int,
        under_way: UnderWay | None = None,
        witness: Witness | None = None,
    ) -> list[bytes]:
        async with self._redis.pipeline(transaction=False) as pipeline:
            if under_way is not None:
                queue_note(pipeline, self._keys, token, under_way)
            if witness is not None:
                write_as(pipeline, token, self._keys, {"claimed": str(witness)})
            _CLAIM.queue(
                pipeline,
                token=token.name,
                own_token=token.value,
                mark=self._keys.claimed(token.topic, token.partition),
                claimed=claimed,
                claims=[self._keys.claim(claim.key) for claim in claims],
                values=[claim.encode() for claim in claims],
                lifetime_ms=self._ttl_ms,
            )
            *_, found = await self._durability.execute(pipeline, self._keys)
            return cast("list[bytes]", found)

    async def _take_over_voids(
        self, claims: Sequence[Claim], results: list[ClaimResult], token: LaneToken
    ) -> None:
        """Give each key whose owner is void to the record that asks for it, unless another was faster."""
        for _ in range(MOST_TAKE_OVERS):
            void = await self._void_owners(claims, results)
            if not void:
                return
            async with self._redis.pipeline(transaction=False) as pipeline:
                for place, owner in void.items():
                    claim = claims[place]
                    _TAKE_OVER.queue(
                        pipeline,
                        token=token.name,
                        own_token=token.value,
                        claim=self._keys.claim(claim.key),
                        void_value=owner,
                        value=claim.encode(),
                        lifetime_ms=self._ttl_ms,
                    )
                stand = await self._durability.execute(pipeline, self._keys)
            for place, value in zip(void, stand, strict=True):
                results[place] = _read(claims[place], cast("bytes", value))
        raise ClaimsContested

    async def _void_owners(
        self, claims: Sequence[Claim], results: Sequence[ClaimResult]
    ) -> Mapping[int, str]:
        """By place the claims that stand for void records. Each owner's partition is asked for once."""
        void: dict[int, str] = {}
        ranges: dict[tuple[str, int], tuple[range, ...]] = {}
        for place, result in enumerate(results):
            if isinstance(result, Owned):
                continue
            source = (result.owner.topic, result.owner.partition)
            if source not in ranges:
                ranges[source] = await self._voids.ranges(*source)
            if not any(result.owner.offset in each for each in ranges[source]):
                continue
            said = result.fingerprint if isinstance(result, Collision) else claims[place].fingerprint
            void[place] = f"{result.owner}:{said}"
        return void

    async def _claim_collisions(
        self, claims: Sequence[Claim], results: list[ClaimResult], token: LaneToken
    ) -> None:
        """Claim the derived keys of what collides; what was told of before is a duplicate."""
        places = [place for place, result in enumerate(results) if isinstance(result, Collision)]
        if not places:
            return
        derived = [claims[place].for_collision() for place in places]
        # Claimed to 0: the mark comes last of all.
        found = await self._claim_all(derived, token, 0)
        told = [_read(claim, owner) for claim, owner in zip(derived, found, strict=True)]
        await self._take_over_voids(derived, told, token)
        for place, result in zip(places, told, strict=True):
            if isinstance(result, Duplicate):
                results[place] = result


_OWNED = Owned()


def _read(claim: Claim, found: bytes) -> ClaimResult:
    if not found:
        return _OWNED
    coordinate, _, fingerprint = found.decode().rpartition(":")
    owner = Coordinate.parse(coordinate)
    if owner == claim.coordinate and fingerprint == claim.fingerprint:
        return Owned()
    if fingerprint == claim.fingerprint:
        return Duplicate(owner)
    return Collision(owner, Fingerprint(fingerprint))
