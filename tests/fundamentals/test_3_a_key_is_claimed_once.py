"""3. Redis says which record owns a key. A claim belongs to the record and not to the worker that made it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis.asyncio import Redis
from ticketgate.codecs import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.store.claims import Claim, Claims, Collision, Duplicate, Owned
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.tokens import Superseded, take_token

from ..support.standing import stand

pytestmark = pytest.mark.redis

DURABILITY = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))


def claim_of(offset: int, *, says: str = "I paid twice.") -> Claim:
    """What the record at this offset of tickets:0 claims."""
    return Claim(IdempotencyKey("T-1"), Coordinate("tickets", 0, offset), Fingerprint(says))


@pytest.fixture
async def claims(redis: Redis, keys: Keys) -> Claims:
    """The claims of a namespace, in a Redis that it stands on."""
    await stand(redis, keys)
    return Claims(redis, keys, ttl=timedelta(days=1), durability=DURABILITY)


async def test_the_first_record_owns_its_key_and_finds_it_as_its_own_after_a_crash(
    claims: Claims, redis: Redis, keys: Keys
) -> None:
    lane = await take_token(redis, keys, "tickets", 0)
    assert await claims.claim([claim_of(7)], token=lane, claimed=8) == (Owned(),)

    successor = await take_token(redis, keys, "tickets", 0)

    assert await claims.claim([claim_of(7)], token=successor, claimed=8) == (Owned(),)


async def test_a_record_sent_again_is_a_duplicate(claims: Claims, redis: Redis, keys: Keys) -> None:
    lane = await take_token(redis, keys, "tickets", 0)
    await claims.claim([claim_of(7)], token=lane, claimed=8)

    found = await claims.claim([claim_of(9)], token=lane, claimed=10)

    assert found == (Duplicate(Coordinate("tickets", 0, 7)),)


async def test_a_record_that_says_something_else_under_the_key_is_a_collision(
    claims: Claims, redis: Redis, keys: Keys
) -> None:
    lane = await take_token(redis, keys, "tickets", 0)
    await claims.claim([claim_of(7)], token=lane, claimed=8)

    (found,) = await claims.claim([claim_of(9, says="Close my account.")], token=lane, claimed=10)

    assert isinstance(found, Collision)


async def test_a_lane_that_was_superseded_writes_nothing(claims: Claims, redis: Redis, keys: Keys) -> None:
    zombie = await take_token(redis, keys, "tickets", 0)
    await take_token(redis, keys, "tickets", 0)

    with pytest.raises(Superseded):
        await claims.claim([claim_of(7)], token=zombie, claimed=8)
