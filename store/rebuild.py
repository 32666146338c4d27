"""Restore claims from what the outputs say, into a Redis that lost some or all of them.

Promise: a claim that stands is never changed. What is restored lives for what is left of a claim's lifetime, counted
from its record's time by Redis' own clock, so no worker's clock decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.store.claims import Claim
from ticketgate.store.clock import redis_now_ms
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.script import Script

# value: what the claim must be. least_ms: how long it shall live at least.
_LENGTHEN = Script(
    "lengthen a claim",
    """
if redis.call('GET', claim) == value and redis.call('PTTL', claim) < tonumber(least_ms) then
  redis.call('PEXPIRE', claim, least_ms)
end
return 0
""",
    keys=["claim"],
    arguments=["value", "least_ms"],
)


@dataclass(frozen=True, slots=True)
class Written:
    """A claim, and when its record was written, in ms since 1970; negative if the record does not say."""

    claim: Claim
    at_ms: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A key that has a committed record made from one input, and in Redis a claim for another."""

    written: Claim
    stands: Claim


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of some claims: set anew, there already and equal, over by age, there and different."""

    restored: int = 0
    present: int = 0
    expired: int = 0
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class StandingClaim:
    """A claim as it stands in Redis; `remaining` None if it never ends, which is not ours."""

    claim: Claim
    remaining: timedelta | None


async def restore(
    redis: Redis, keys: Keys, written: Sequence[Written], *, ttl: timedelta, dry_run: bool = False
) -> Restored:
    """Restore a batch in two round trips; `dry_run` changes nothing and says what would become of each."""
    now_ms = await redis_now_ms(redis)
    ttl_ms = round(ttl.total_seconds() * 1000)
    living: list[Claim] = []
    async with redis.pipeline(transaction=False) as pipeline:
        for each in written:
            # A record from a clock that runs ahead must not outlive a claim; one without a time gets a whole life.
            left_ms = ttl_ms if each.at_ms < 0 else min(ttl_ms, ttl_ms - (now_ms - each.at_ms))
            if left_ms <= 0:
                continue
            living.append(each.claim)
            name = keys.claim(each.claim.key)
            if dry_run:
                pipeline.get(name)
            else:
                pipeline.set(name, each.claim.encode(), nx=True, get=True, px=left_ms)
        found = cast("list[bytes | None]", await pipeline.execute()) if living else []
    restored = present = 0
    conflicts: list[Conflict] = []
    for claim, value in zip(living, found, strict=True):
        if value is None:
            restored += 1
        elif value == claim.encode().encode():
            present += 1
        else:
            conflicts.append(Conflict(claim, _parse(claim.key, value)))
    return Restored(restored, present, len(written) - len(living), tuple(conflicts))


async def lengthen(
    redis: Redis, keys: Keys, settled: Sequence[Written], *, ttl: timedelta, dry_run: bool = False
) -> None:
    """Have the claims of tickets that were settled live as long as their settlement's, from whose records these are:
    those that stand, where they would end earlier, and those that are over by their own records."""
    if not settled or dry_run:
        return
    await restore(redis, keys, settled, ttl=ttl)
    now_ms = await redis_now_ms(redis)
    ttl_ms = round(ttl.total_seconds() * 1000)
    async with redis.pipeline(transaction=False) as pipeline:
        for each in settled:
            left_ms = ttl_ms if each.at_ms < 0 else min(ttl_ms, ttl_ms - (now_ms - each.at_ms))
            if left_ms > 0:
                _LENGTHEN.queue(
                    pipeline, claim=keys.claim(each.claim.key), value=each.claim.encode(), least_ms=left_ms
                )
        await pipeline.execute()


async def wait_for_replicas(redis: Redis, keys: Keys, *, replicas: int, timeout: timedelta) -> None:
    """Wait until so many replicas have on disk all that was written before. Raises `ClaimsNotDurable`."""
    if not replicas:
        return
    async with redis.pipeline(transaction=False) as pipeline:
        # An empty pipeline: what is waited for was written before.
        await Durability(replicas=replicas, syncs_itself=True, timeout=timeout).execute(pipeline, keys)


async def read_claims(redis: Redis, keys: Keys, wanted: Sequence[IdempotencyKey]) -> tuple[Claim | None, ...]:
    """The claims on keys as they stand, in order, None where there is none."""
    if not wanted:
        return ()
    found = cast("list[bytes | None]", await redis.mget([keys.claim(key) for key in wanted]))
    return tuple(
        None if value is None else _parse(key, value) for key, value in zip(wanted, found, strict=True)
    )


async def standing_claim(redis: Redis, keys: Keys, key: IdempotencyKey) -> StandingClaim | None:
    """The claim on one key with its remaining lifetime, or None."""
    async with redis.pipeline(transaction=True) as pipeline:
        pipeline.get(keys.claim(key))
        pipeline.pttl(keys.claim(key))
        value, left_ms = await pipeline.execute()
    if value is None:
        return None
    return StandingClaim(_parse(key, value), None if left_ms < 0 else timedelta(milliseconds=left_ms))


async def derived_keys(redis: Redis, keys: Keys, key: IdempotencyKey) -> tuple[IdempotencyKey, ...]:
    """The claimed keys that are derived from `key`, such as collisions'. Walks the whole of Redis, in small steps."""
    prefix = keys.claim(key)
    found = [cast("bytes", name).decode() async for name in redis.scan_iter(match=f"{prefix}:*", count=1_000)]
    return tuple(IdempotencyKey(f"{key}{name[len(prefix) :]}") for name in sorted(set(found)))


def _parse(key: IdempotencyKey, value: bytes) -> Claim:
    coordinate, _, fingerprint = value.decode().rpartition(":")
    return Claim(key, Coordinate.parse(coordinate), Fingerprint(fingerprint))
