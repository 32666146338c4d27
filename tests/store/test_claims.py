"""Claims on a real Valkey: who owns a key, and that it changes hands only from a void record."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from ticketgate.codecs.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.store.claims import Claim, ClaimResult, Claims, ClaimsNotDurable, Collision, Duplicate, Owned
from ticketgate.store.connect import connect
from ticketgate.store.keys import Keys
from ticketgate.store.marks import Position, read_marks
from ticketgate.store.voids import Voids
from ticketgate.streams.embedded.valkey import Valkey

pytestmark = pytest.mark.redis


def claim(key: str = "k", *, partition: int = 0, offset: int = 0, says: str = "a") -> Claim:
    return Claim(IdempotencyKey(key), Coordinate("tickets", partition, offset), Fingerprint(says))


async def take(claims: Claims, *wanted: Claim, committed: int | None = None) -> tuple[ClaimResult, ...]:
    last = wanted[-1].coordinate
    return await claims.claim(
        wanted, position=Position("tickets", last.partition, last.offset + 1, committed)
    )


async def test_a_free_key_is_owned_and_stays_owned_by_the_same_record(claims: Claims) -> None:
    assert await take(claims, claim()) == (Owned(),)

    assert await take(claims, claim()) == (Owned(),)


async def test_another_record_that_says_the_same_is_a_duplicate(claims: Claims) -> None:
    first = claim(offset=3)
    await take(claims, first)

    assert await take(claims, claim(partition=1, offset=9)) == (Duplicate(first.coordinate),)


async def test_another_record_that_says_something_else_is_a_collision(claims: Claims) -> None:
    first = claim(offset=3)
    await take(claims, first)

    assert await take(claims, claim(offset=4, says="b")) == (Collision(first.coordinate, Fingerprint("a")),)


async def test_within_a_batch_the_earlier_record_owns_the_key(claims: Claims) -> None:
    found = await take(claims, claim(offset=1), claim(offset=2), claim("other", offset=3))

    assert found == (Owned(), Duplicate(claim(offset=1).coordinate), Owned())


async def test_a_claim_outlives_neither_its_time_nor_is_it_prolonged(redis: Redis, keys: Keys) -> None:
    claims = Claims(redis, keys, ttl=timedelta(seconds=10), replicas=0, timeout=timedelta(seconds=5))
    await take(claims, claim())
    await redis.pexpire(keys.claim("k"), 500)

    await take(claims, claim())

    assert await redis.pttl(keys.claim("k")) <= 500


async def test_the_claim_of_a_void_record_is_taken_over(redis: Redis, keys: Keys, claims: Claims) -> None:
    await take(claims, claim(offset=5))
    await Voids(redis, keys).journal("tickets", 0, range(4, 6))

    found = await take(claims, claim(partition=1, offset=0))

    assert found == (Owned(),)
    assert await claims.show(IdempotencyKey("k")) == "tickets:1:0:a"


async def test_of_two_that_take_over_one_wins(redis: Redis, keys: Keys, claims: Claims) -> None:
    await take(claims, claim(offset=5))
    await Voids(redis, keys).journal("tickets", 0, range(6))
    rivals = [claim(partition=1, offset=0), claim(partition=2, offset=0)]

    found = await asyncio.gather(*(take(claims, each) for each in rivals))

    winners = [each for each, (result,) in zip(rivals, found, strict=True) if isinstance(result, Owned)]
    assert len(winners) == 1
    assert (Duplicate(winners[0].coordinate),) in found


async def test_a_claim_outside_the_void_range_is_not_taken_over(
    redis: Redis, keys: Keys, claims: Claims
) -> None:
    await take(claims, claim(offset=5))
    await Voids(redis, keys).journal("tickets", 0, range(3, 5))

    assert await take(claims, claim(partition=1, offset=0)) == (Duplicate(claim(offset=5).coordinate),)


async def test_claiming_raises_the_marks_and_never_lowers_them(
    redis: Redis, keys: Keys, claims: Claims
) -> None:
    await take(claims, claim("a", offset=9), committed=5)
    await take(claims, claim("b", offset=2), committed=1)  # a zombie, later

    marks = await read_marks(redis, keys, "tickets", 0)

    assert (marks.claimed, marks.committed) == (10, 5)


async def test_an_empty_batch_moves_the_marks_all_the_same(redis: Redis, keys: Keys, claims: Claims) -> None:
    await claims.claim([], position=Position("tickets", 3, 7, None))

    assert (await read_marks(redis, keys, "tickets", 3)).claimed == 7


async def test_claims_that_do_not_reach_the_promised_replicas_do_not_count(redis: Redis, keys: Keys) -> None:
    claims = Claims(redis, keys, ttl=timedelta(days=1), replicas=1, timeout=timedelta(milliseconds=50))

    with pytest.raises(ClaimsNotDurable, match="0 of 1 replicas"):
        await take(claims, claim())


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
@settings(max_examples=30, deadline=None)
@given(
    wanted=st.lists(
        st.builds(
            lambda key, partition, offset, says: (key, partition, offset, says),
            st.sampled_from("xyz"),
            st.integers(0, 2),
            st.integers(0, 3),
            st.sampled_from("ab"),
        ),
        max_size=20,
    )
)
def test_a_key_has_one_owner_whatever_is_asked(
    server: Valkey, wanted: list[tuple[str, int, int, str]]
) -> None:
    async def ask() -> list[tuple[str, ClaimResult, Coordinate]]:
        redis = connect(server.url, timeout=timedelta(seconds=5))
        claims = Claims(redis, Keys("h"), ttl=timedelta(days=1), replicas=0, timeout=timedelta(seconds=5))
        try:
            found = []
            for key, partition, offset, says in wanted:
                each = claim(key, partition=partition, offset=offset, says=says)
                (result,) = await take(claims, each)
                found.append((key, result, each.coordinate))
            return found
        finally:
            await redis.flushdb()
            await redis.aclose()

    owners: dict[str, Coordinate] = {}
    for key, result, coordinate in asyncio.run(ask()):
        owner = coordinate if isinstance(result, Owned) else result.owner
        assert owners.setdefault(key, owner) == owner
