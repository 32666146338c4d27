"""Settlements' claims on a real Valkey: one for a ticket, only while its own claim stands, and let go of where it is
not taken."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey, settlement_key
from ticketgate.store.claims import Claim, Claims
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import read_marks
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.settlement_claims import (
    NotStanding,
    SettledBefore,
    SettlementClaims,
    Settling,
    SettlingResult,
    Taken,
)
from ticketgate.store.tokens import LaneToken, Superseded, take_token

from ..support.standing import stand

pytestmark = pytest.mark.redis
ALWAYS = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
TTL = timedelta(days=1)
KEY = IdempotencyKey("k" * 64)
TICKET = Claim(KEY, Coordinate("tickets", 0, 3), Fingerprint("t"))


def settling(*, partition: int = 0, offset: int = 0, says: str = "a", ticket: Claim = TICKET) -> Settling:
    at = Coordinate("settlements", partition, offset)
    return Settling(Claim(settlement_key(KEY), at, Fingerprint(says)), ticket)


class Lane:
    """What lanes do in Redis: one of tickets, and one a partition of settlements."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self.redis, self.keys = redis, keys
        self.claims = SettlementClaims(redis, keys, ttl=TTL, durability=ALWAYS)
        self.tokens: dict[int, LaneToken] = {}

    async def decide_ticket(self, claim: Claim = TICKET, *, ttl: timedelta = TTL) -> None:
        await stand(self.redis, self.keys)
        token = await take_token(self.redis, self.keys, "tickets", 0)
        claims = Claims(self.redis, self.keys, ttl=ttl, durability=ALWAYS)
        await claims.claim([claim], token=token, claimed=claim.coordinate.offset + 1)

    async def open(self, partition: int = 0) -> LaneToken:
        self.tokens[partition] = await take_token(self.redis, self.keys, "settlements", partition)
        return self.tokens[partition]

    async def take(self, *wanted: Settling, let_go: tuple[Settling, ...] = ()) -> tuple[SettlingResult, ...]:
        last = (wanted or let_go)[-1].claim.coordinate
        token = self.tokens.get(last.partition) or await self.open(last.partition)
        return await self.claims.claim(
            wanted, let_go=[each.claim for each in let_go], token=token, claimed=last.offset + 1
        )

    async def standing(self) -> str | None:
        found = await self.redis.get(self.keys.claim(settlement_key(KEY)))
        return found.decode() if isinstance(found, bytes) else None


@pytest.fixture
def lane(redis: Redis, keys: Keys) -> Lane:
    return Lane(redis, keys)


async def test_the_first_settlement_is_the_tickets_and_stays_it_for_a_successor(lane: Lane) -> None:
    await lane.decide_ticket()

    assert await lane.take(settling()) == (Taken(),)

    await lane.open()
    assert await lane.take(settling()) == (Taken(),)
    assert (await read_marks(lane.redis, lane.keys, "settlements", 0)).claimed == 1


async def test_both_claims_live_a_whole_lifetime_from_then_on(lane: Lane) -> None:
    await lane.decide_ticket(ttl=timedelta(minutes=1))

    await lane.take(settling())

    for key in (KEY, settlement_key(KEY)):
        assert await lane.redis.pttl(lane.keys.claim(key)) > TTL.total_seconds() * 1000 - 60_000


async def test_a_second_one_learns_who_was_before_it_and_whether_it_says_the_same(lane: Lane) -> None:
    await lane.decide_ticket()
    first = settling(offset=4)
    await lane.take(first)

    assert await lane.take(settling(partition=1, offset=9), settling(partition=1, offset=10, says="b")) == (
        SettledBefore(first.claim.coordinate, is_same=True),
        SettledBefore(first.claim.coordinate, is_same=False),
    )


async def test_of_two_in_one_batch_the_first_is_taken(lane: Lane) -> None:
    await lane.decide_ticket()

    found = await lane.take(settling(says="a"), settling(offset=1, says="b"))

    assert found == (Taken(), SettledBefore(Coordinate("settlements", 0, 0), is_same=False))


async def test_without_the_tickets_claim_nothing_is_settled(lane: Lane) -> None:
    await stand(lane.redis, lane.keys)

    assert await lane.take(settling()) == (NotStanding(is_anew=False),)

    assert await lane.standing() is None


async def test_what_was_decided_anew_is_not_settled_by_what_was_said_of_the_record_before(lane: Lane) -> None:
    await lane.decide_ticket(replace(TICKET, coordinate=Coordinate("tickets", 0, 99)))

    assert await lane.take(settling()) == (NotStanding(is_anew=True),)

    assert await lane.standing() is None


async def test_a_claim_of_before_goes_with_the_tickets(lane: Lane) -> None:
    await lane.decide_ticket()
    await lane.take(settling())
    await lane.redis.delete(lane.keys.claim(KEY))

    assert await lane.take(settling()) == (NotStanding(is_anew=False),)

    assert await lane.standing() is None


async def test_what_is_not_taken_lets_go_of_its_own_claim_and_of_no_others(lane: Lane) -> None:
    await lane.decide_ticket()
    first, second = settling(), settling(offset=1, says="b")
    await lane.take(first)

    await lane.take(let_go=(second,))
    assert await lane.standing() == first.claim.encode()

    await lane.open()
    await lane.take(let_go=(first,))
    assert await lane.standing() is None
    assert await lane.take(second) == (Taken(),)


async def test_a_settlement_that_was_lost_unread_is_no_owner_any_more(lane: Lane) -> None:
    await lane.decide_ticket()
    await lane.take(settling(offset=4))
    await Voids(lane.redis, lane.keys, ALWAYS).journal(lane.tokens[0], range(4, 5))

    assert await lane.take(settling(offset=5, says="b")) == (Taken(),)


async def test_a_superseded_lane_neither_claims_nor_lets_go(lane: Lane) -> None:
    await lane.decide_ticket()
    await lane.take(settling())
    await take_token(lane.redis, lane.keys, "settlements", 0)

    with pytest.raises(Superseded):
        await lane.take(settling(offset=1, says="b"))
    with pytest.raises(Superseded):
        await lane.take(let_go=(settling(),))

    assert await lane.standing() == settling().claim.encode()
