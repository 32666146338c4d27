"""Claims on a real Valkey: who owns a key, and that it changes hands only from a void record."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.store.claims import Claim, ClaimResult, Claims, Collision, Duplicate, Owned
from ticketgate.store.connect import connect
from ticketgate.store.durability import ClaimsNotDurable, Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import read_marks
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.tokens import LaneToken, Superseded, take_token
from ticketgate.streams.parts.valkey import Valkey

from ..support.standing import stand

pytestmark = pytest.mark.redis
ALWAYS = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))


def claim(key: str = "k", *, partition: int = 0, offset: int = 0, says: str = "a") -> Claim:
    return Claim(IdempotencyKey(key), Coordinate("tickets", partition, offset), Fingerprint(says))


class Lane:
    """What a lane does in Redis: it opens, and claims batches under its token."""

    def __init__(self, redis: Redis, keys: Keys, durability: Durability = ALWAYS) -> None:
        self.redis, self.keys = redis, keys
        self.durability = durability
        self.claims = Claims(redis, keys, ttl=timedelta(days=1), durability=durability)
        self.tokens: dict[int, LaneToken] = {}

    async def open(self, partition: int) -> LaneToken:
        await stand(self.redis, self.keys)
        self.tokens[partition] = await take_token(self.redis, self.keys, "tickets", partition)
        return self.tokens[partition]

    async def take(self, *wanted: Claim) -> tuple[ClaimResult, ...]:
        last = wanted[-1].coordinate
        token = self.tokens.get(last.partition) or await self.open(last.partition)
        return await self.claims.claim(wanted, token=token, claimed=last.offset + 1)

    async def journal(self, offsets: range) -> None:
        await Voids(self.redis, self.keys, self.durability).journal(self.tokens[0], offsets)


@pytest.fixture
def lane(redis: Redis, keys: Keys) -> Lane:
    return Lane(redis, keys)


async def test_a_free_key_is_owned_and_stays_owned_by_the_same_record(lane: Lane) -> None:
    assert await lane.take(claim()) == (Owned(),)

    assert await lane.take(claim()) == (Owned(),)


async def test_a_successor_finds_the_claims_of_its_partition_as_its_own(lane: Lane) -> None:
    await lane.take(claim(offset=3))
    await lane.open(0)

    assert await lane.take(claim(offset=3)) == (Owned(),)


async def test_another_record_that_says_the_same_is_a_duplicate(lane: Lane) -> None:
    first = claim(offset=3)
    await lane.take(first)

    assert await lane.take(claim(partition=1, offset=9)) == (Duplicate(first.coordinate),)


async def test_another_record_that_says_something_else_is_a_collision_and_told_of_once(lane: Lane) -> None:
    first, other = claim(offset=3), claim(offset=4, says="b")
    await lane.take(first)

    assert await lane.take(other) == (Collision(first.coordinate, Fingerprint("a")),)
    assert await lane.take(other) == (
        Collision(first.coordinate, Fingerprint("a")),
    )  # tried again after a crash
    assert await lane.take(claim(offset=5, says="b")) == (Duplicate(other.coordinate),)


async def test_within_a_batch_the_earlier_record_owns_the_key(lane: Lane) -> None:
    found = await lane.take(claim(offset=1), claim(offset=2), claim("other", offset=3))

    assert found == (Owned(), Duplicate(claim(offset=1).coordinate), Owned())


async def test_a_claim_outlives_neither_its_time_nor_is_it_prolonged(lane: Lane) -> None:
    await lane.take(claim())
    await lane.redis.pexpire(lane.keys.claim("k"), 500)

    await lane.take(claim())

    assert await lane.redis.pttl(lane.keys.claim("k")) <= 500


async def test_the_claim_of_a_void_record_is_taken_over(lane: Lane) -> None:
    await lane.take(claim(offset=5))
    await lane.journal(range(4, 6))

    found = await lane.take(claim(partition=1, offset=0))

    assert found == (Owned(),)
    assert await lane.claims.show(IdempotencyKey("k")) == "tickets:1:0:a"


async def test_a_void_claim_for_another_text_is_taken_over_and_no_collision(lane: Lane) -> None:
    await lane.take(claim(offset=5))
    await lane.journal(range(4, 6))

    assert await lane.take(claim(partition=1, offset=0, says="b")) == (Owned(),)


async def test_of_two_that_take_over_one_wins(lane: Lane) -> None:
    await lane.take(claim(offset=5))
    await lane.journal(range(6))
    rivals = [claim(partition=1, offset=0), claim(partition=2, offset=0)]

    found = await asyncio.gather(*(lane.take(each) for each in rivals))

    winners = [each for each, (result,) in zip(rivals, found, strict=True) if isinstance(result, Owned)]
    assert len(winners) == 1
    assert (Duplicate(winners[0].coordinate),) in found


async def test_a_collision_whose_teller_is_void_is_told_of_by_the_next(lane: Lane) -> None:
    await lane.take(claim(partition=1, offset=0))
    await lane.take(claim(offset=5, says="b"))
    await lane.journal(range(4, 6))

    found = await lane.take(claim(partition=2, offset=0, says="b"))

    assert found == (Collision(claim(partition=1, offset=0).coordinate, Fingerprint("a")),)


async def test_where_redis_syncs_once_a_second_what_no_mark_would_miss_waits_for_the_disk() -> None:
    with Valkey(options={"appendfsync": "everysec"}) as server:
        redis = connect(server.url, timeout=timedelta(seconds=5))
        lane = Lane(
            redis, Keys("s"), Durability(replicas=0, syncs_itself=False, timeout=timedelta(seconds=5))
        )
        await lane.take(claim(offset=5))
        await lane.journal(range(4, 6))

        assert await lane.take(claim(partition=1, offset=0)) == (Owned(),)

        await redis.aclose()


async def test_a_claim_outside_the_void_range_is_not_taken_over(lane: Lane) -> None:
    await lane.take(claim(offset=5))
    await lane.journal(range(3, 5))

    assert await lane.take(claim(partition=1, offset=0)) == (Duplicate(claim(offset=5).coordinate),)


async def test_a_void_range_is_never_shortened_and_later_ones_are_forgotten(lane: Lane) -> None:
    await lane.open(0)
    await lane.journal(range(2, 9))
    await lane.journal(range(20, 30))

    await lane.journal(range(2, 4))

    voids = Voids(lane.redis, lane.keys)
    assert await voids.ranges("tickets", 0) == (range(2, 9),)


async def test_claiming_raises_the_marks_and_never_lowers_them(lane: Lane) -> None:
    await lane.take(claim("a", offset=9))
    await lane.claims.mark_committed(lane.tokens[0], 10)

    await lane.take(claim("b", offset=2))
    await lane.claims.mark_committed(lane.tokens[0], 3)

    marks = await read_marks(lane.redis, lane.keys, "tickets", 0)
    assert (marks.claimed, marks.committed) == (10, 10)


async def test_a_batch_with_duplicates_and_one_without_tickets_move_the_mark_too(lane: Lane) -> None:
    await lane.take(claim("a", offset=1))
    await lane.take(claim("a", offset=2), claim("a", offset=3, says="b"))
    assert (await read_marks(lane.redis, lane.keys, "tickets", 0)).claimed == 4

    await lane.claims.claim([], token=lane.tokens[0], claimed=7)

    assert (await read_marks(lane.redis, lane.keys, "tickets", 0)).claimed == 7


async def test_a_superseded_lane_writes_nothing(lane: Lane) -> None:
    await lane.take(claim("a", offset=1))
    zombie = lane.tokens[0]
    await lane.open(0)
    before = {name: await lane.redis.dump(name) async for name in lane.redis.scan_iter()}

    for writing in (
        lane.claims.claim([claim("b", offset=2)], token=zombie, claimed=3),
        lane.claims.mark_committed(zombie, 3),
        Voids(lane.redis, lane.keys, ALWAYS).journal(zombie, range(5)),
    ):
        with pytest.raises(Superseded):
            await writing

    assert {name: await lane.redis.dump(name) async for name in lane.redis.scan_iter()} == before


async def test_a_lane_at_work_notices_that_redis_was_emptied_before_it_claims(lane: Lane) -> None:
    await lane.take(claim("a", offset=1))
    await lane.redis.flushdb()

    with pytest.raises(Superseded):
        await lane.take(claim("a", offset=2))

    assert await lane.redis.dbsize() == 0


async def test_claims_that_do_not_reach_the_promised_replicas_do_not_count(redis: Redis, keys: Keys) -> None:
    lane = Lane(redis, keys, Durability(replicas=1, syncs_itself=True, timeout=timedelta(milliseconds=50)))

    with pytest.raises(ClaimsNotDurable, match="0 of 1 replicas"):
        await lane.take(claim())


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
        # A record says one thing: its key and text come with its coordinate.
        unique_by=lambda each: each[1:3],
    ).flatmap(lambda records: st.lists(st.sampled_from(records), max_size=20) if records else st.just([]))
)
def test_a_key_has_one_owner_whatever_is_asked(
    server: Valkey, wanted: list[tuple[str, int, int, str]]
) -> None:
    async def ask() -> list[tuple[str, ClaimResult, Coordinate]]:
        redis = connect(server.url, timeout=timedelta(seconds=5))
        lane = Lane(redis, Keys("h"))
        try:
            found = []
            for key, partition, offset, says in wanted:
                each = claim(key, partition=partition, offset=offset, says=says)
                (result,) = await lane.take(each)
                found.append((key, result, each.coordinate))
            return found
        finally:
            await redis.flushdb()
            await redis.aclose()

    owners: dict[str, Coordinate] = {}
    tellers: dict[tuple[str, str], Coordinate] = {}
    for (key, _, _, says), (_, result, coordinate) in zip(wanted, asyncio.run(ask()), strict=True):
        match result:
            case Owned():
                assert owners.setdefault(key, coordinate) == coordinate
                tellers.setdefault((key, says), coordinate)
            case Collision():
                assert result.owner == owners[key]
                assert tellers.setdefault((key, says), coordinate) == coordinate
            case Duplicate():
                assert result.owner == tellers[key, says]
