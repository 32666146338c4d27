"""Who owns an idempotency key: the claims, one Redis string each, bound to the coordinate of a record.

Promise: a key maps to at most one coordinate for as long as its claim lives, and changes only from a void one.
A claim is no lease: it belongs to the coordinate and not to the worker, so whoever serves the partition next
finds its own claims and goes on. Relies on: a Redis that forgets nothing (conditions.py). Source: DESIGN section 4,
step 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from ticketgate.codecs.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.store.keys import Keys
from ticketgate.store.marks import Position, raise_mark
from ticketgate.store.voids import Voids

# KEYS[1] a claim; ARGV[1] the value found void, ARGV[2] the new value, ARGV[3] its lifetime in ms.
# Returns the value that stands afterwards, so that the loser of a race learns who won.
_TAKE_OVER = """
local found = redis.call('GET', KEYS[1])
if found == false or found == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  return ARGV[2]
end
return found
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A key, the record that wants it, and what that record says."""

    key: IdempotencyKey
    coordinate: Coordinate
    fingerprint: Fingerprint

    def encode(self) -> str:
        """`topic:partition:offset:fingerprint`, the value in Redis."""
        return f"{self.coordinate}:{self.fingerprint}"


@dataclass(frozen=True, slots=True)
class Owned:
    """The record owns its key: it had no owner, this very record claimed it before, or its owner was void."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The key belongs to another record that says the same; this one has no effect of its own."""

    owner: Coordinate


@dataclass(frozen=True, slots=True)
class Collision:
    """The key belongs to another record that says something else."""

    owner: Coordinate
    fingerprint: Fingerprint


ClaimResult = Owned | Duplicate | Collision


class ClaimsNotDurable(Exception):
    """Too few replicas have the claims on disk. Nothing may be emitted on them; the lane reopens and tries again."""

    def __init__(self, *, wanted: int, reached: int) -> None:
        super().__init__(
            f"claims reached the disk of {reached} of {wanted} replicas; check Redis replication"
        )
        self.wanted, self.reached = wanted, reached


class Claims:
    """The claims of one namespace.

    `ttl` is how long a claim lives; `replicas` is how many must have it on disk before it counts (0: the primary's
    own disk, by its `appendfsync`); `timeout` bounds the wait for them.
    """

    def __init__(
        self, redis: Redis, keys: Keys, *, ttl: timedelta, replicas: int, timeout: timedelta
    ) -> None:
        self._redis = redis
        self._keys = keys
        self._voids = Voids(redis, keys)
        self._ttl_ms = round(ttl.total_seconds() * 1000)
        self._replicas = replicas
        self._timeout_ms = round(timeout.total_seconds() * 1000)

    async def claim(self, claims: Sequence[Claim], *, position: Position) -> tuple[ClaimResult, ...]:
        """Claim a batch's keys in one round trip, and with them move the lane's marks to `position`.

        Returns one result a claim, in order. Only a key that belongs to a void record costs more round trips.
        Raises redis-py's errors (nothing may be emitted then) and `ClaimsNotDurable`.
        """
        async with self._redis.pipeline(transaction=False) as pipeline:
            for claim in claims:
                # NX and GET in one: nothing back means that the key was free and is now ours.
                pipeline.set(self._keys.claim(claim.key), claim.encode(), nx=True, get=True, px=self._ttl_ms)
            self._queue_marks(pipeline, position)
            replies = await self._execute_durably(pipeline)
        results = [_read(claim, found) for claim, found in zip(claims, replies, strict=False)]
        for index, result in enumerate(results):
            if not isinstance(result, Owned) and await self._voids.is_void(result.owner):
                results[index] = await self._take_over(claims[index], replies[index] or b"")
        return tuple(results)

    async def show(self, key: IdempotencyKey) -> str | None:
        """The claim on a key as it stands, `topic:partition:offset:fingerprint`, or None."""
        found = await self._redis.get(self._keys.claim(key))
        return None if found is None else cast("bytes", found).decode()

    def _queue_marks(self, pipeline: Pipeline, position: Position) -> None:
        name = (position.topic, position.partition)
        raise_mark(pipeline, self._keys.claimed(*name), position.claimed)
        if position.committed is not None:
            raise_mark(pipeline, self._keys.committed(*name), position.committed)

    async def _take_over(self, claim: Claim, found: bytes) -> ClaimResult:
        async with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.eval(_TAKE_OVER, 1, self._keys.claim(claim.key), found, claim.encode(), self._ttl_ms)
            (stands, *_) = await self._execute_durably(pipeline)
        return _read(claim, stands)

    async def _execute_durably(self, pipeline: Pipeline) -> list[bytes | None]:
        """Execute, and where replicas are promised wait in the same round trip until they have it all on disk."""
        if self._replicas:
            # WAITAOF waits for the last write of its own connection. A claim found as ours was written by another
            # one, so a write of this one goes after it in the replication stream.
            pipeline.set(f"{self._keys.prefix}fence", b"")
            pipeline.execute_command("WAITAOF", 1, self._replicas, self._timeout_ms)
        replies: list[bytes | None] = await pipeline.execute()
        if self._replicas:
            _, reached = cast("tuple[int, int]", replies[-1])
            if reached < self._replicas:
                raise ClaimsNotDurable(wanted=self._replicas, reached=reached)
        return replies


def _read(claim: Claim, found: bytes | None) -> ClaimResult:
    if found is None:
        return Owned()
    coordinate, _, fingerprint = found.decode().rpartition(":")
    owner = Coordinate.parse(coordinate)
    if owner == claim.coordinate and fingerprint == claim.fingerprint:
        return Owned()
    if fingerprint == claim.fingerprint:
        return Duplicate(owner)
    return Collision(owner, Fingerprint(fingerprint))
