"""What every ledger of effects does: the same tests on the one in memory and on the one in a real Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory
from ticketgate.agents.effects.ledger import Collided, EffectLedger, Entry, Moved, Settlement
from ticketgate.agents.effects.rules import NO_ANSWER
from ticketgate.codecs.records.receipt import EffectState, EffectStatus, JudgedAgain, SettledBy
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.connect import connect
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.ledger.ledger import Ledger
from ticketgate.store.tokens import LaneToken, take_token
from ticketgate.streams.parts.valkey import Valkey

from ...support.effects import LANE, order
from ...support.standing import stand

DURABILITY = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
FINE = Verdict(Status.ACCEPT, Stage.POSTCONDITION, (), "done")
COMMITTED = Settlement(
    state=EffectState.COMMITTED,
    verdict=FINE,
    status=EffectStatus.CREATED,
    provider_id="tr_1",
    observed={"amount_gbp": "600.00"},
)
UNKNOWN = Settlement(state=EffectState.UNKNOWN, verdict=NO_ANSWER)
ABSENT = Settlement(state=EffectState.ABSENT, verdict=NO_ANSWER)
REJECTED = Settlement(
    state=EffectState.REJECTED,
    verdict=Verdict(Status.DENY, Stage.AUTHORITY, ("revoked",), "no"),
    judged_again=JudgedAgain(
        {"authority": None, "world": {"facts": {"n": 2**63 - 1}}, "unreadable": ["authority:é"]},
        datetime(2026, 9, 1, 12, 0, 0, 1_000, tzinfo=UTC),
    ),
)
BY_HAND = replace(
    COMMITTED,
    status=EffectStatus.SETTLED_BY_PERSON,
    provider_id=None,
    observed=None,
    settled_by=SettledBy("ann", "paid at the counter"),
)


@dataclass
class Kept:
    """A ledger with a lane's token."""

    ledger: EffectLedger
    token: LaneToken

    async def prepare(self, key: str = "k1") -> Entry:
        (entry,) = await self.ledger.prepare([order(key)], token=self.token, claimed=1)
        assert isinstance(entry, Entry)
        return entry

    async def begin(self, entry: Entry, *, read_back_in_s: float = 60.0) -> Entry:
        sent = await self.ledger.begin_send(
            entry, verdict=NO_ANSWER, token=self.token, read_back_in_s=read_back_in_s
        )
        assert isinstance(sent, Entry)
        return sent

    async def send(self, key: str = "k1", *, read_back_in_s: float = 60.0) -> Entry:
        return await self.begin(await self.prepare(key), read_back_in_s=read_back_in_s)

    async def settle(
        self, entry: Entry, settlement: Settlement, *, by_lane: bool = True, read_back_in_s: float = 60.0
    ) -> Entry:
        token = self.token if by_lane else None
        written = await self.ledger.settle(entry, settlement, token=token, read_back_in_s=read_back_in_s)
        assert isinstance(written, Entry)
        return written


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.redis)])
async def kept(request: pytest.FixtureRequest, keys: Keys) -> AsyncIterator[Kept]:
    if request.param == "memory":
        yield Kept(LedgerInMemory(), LANE)
        return
    server: Valkey = request.getfixturevalue("server")
    redis = connect(server.url, timeout=timedelta(seconds=5))
    await stand(redis, keys)
    token = await take_token(redis, keys, "dispatch", 0)
    yield Kept(Ledger(redis, keys, ttl=timedelta(days=1), durability=DURABILITY), token)
    await redis.flushdb()
    await redis.aclose()


async def test_a_key_is_bound_to_its_command_and_found_again(kept: Kept) -> None:
    entry = await kept.prepare()

    assert (entry.state, entry.sequence, entry.sends, entry.is_open) == (EffectState.PREPARED, 1, 0, False)
    assert entry.order == order()
    assert await kept.prepare() == entry
    assert await kept.ledger.read("k1") == entry
    assert await kept.ledger.read("k2") is None


async def test_another_command_under_the_key_collides_and_touches_nothing(kept: Kept) -> None:
    first = await kept.prepare()
    other = order(amount_gbp="700.00")

    found = await kept.ledger.prepare([other, order("k2")], token=kept.token, claimed=2)

    assert found[0] == Collided(other, first)
    assert isinstance(found[1], Entry)
    assert await kept.ledger.read("k1") == first


async def test_the_same_command_from_another_record_finds_what_stands(kept: Kept) -> None:
    first = await kept.prepare()

    found = await kept.ledger.prepare([order(offset=9), order()], token=kept.token, claimed=10)

    assert found == (first, first)


async def test_what_begins_to_be_sent_is_unknown_and_open(kept: Kept) -> None:
    sent = await kept.send()

    assert (sent.state, sent.sequence, sent.sends) == (EffectState.UNKNOWN, 2, 1)
    assert sent.verdict == NO_ANSWER
    assert sent.is_open
    assert (await kept.ledger.count_open()).count == 1
    assert [each.key for each in await kept.ledger.held(10)] == ["k1"]


async def test_of_two_that_begin_to_send_one_wins(kept: Kept) -> None:
    entry = await kept.prepare()

    found = await asyncio.gather(
        *(
            kept.ledger.begin_send(entry, verdict=NO_ANSWER, token=kept.token, read_back_in_s=60)
            for _ in range(3)
        )
    )

    assert sum(isinstance(each, Entry) for each in found) == 1
    moved = next(each for each in found if isinstance(each, Moved))
    assert moved.entry is not None
    assert (moved.entry.state, moved.entry.sends) == (EffectState.UNKNOWN, 1)


async def test_a_settlement_is_kept_whole(kept: Kept) -> None:
    sent = await kept.send()

    settled = await kept.settle(sent, COMMITTED)

    assert (settled.state, settled.sequence, settled.sends) == (EffectState.COMMITTED, 3, 1)
    assert (settled.status, settled.provider_id) == (EffectStatus.CREATED, "tr_1")
    assert (settled.observed, settled.verdict) == ({"amount_gbp": "600.00"}, FINE)
    assert not settled.is_open
    assert (await kept.ledger.count_open()).count == 0
    assert await kept.ledger.take_due(10) == ()


async def test_of_two_that_settle_one_wins_and_the_other_learns_how_it_stands(kept: Kept) -> None:
    sent = await kept.send()
    first = await kept.settle(sent, COMMITTED)

    second = await kept.ledger.settle(sent, REJECTED, token=kept.token, read_back_in_s=0)

    assert isinstance(second, Moved)
    assert second.entry is not None
    assert replace(second.entry, age_s=0) == replace(first, age_s=0)


async def test_what_the_gates_refuse_is_rejected_without_being_sent(kept: Kept) -> None:
    settled = await kept.settle(await kept.prepare(), REJECTED)

    assert (settled.state, settled.sends) == (EffectState.REJECTED, 0)
    assert settled.judged_again == REJECTED.judged_again


async def test_what_was_rejected_unsent_leaves_its_key_to_another_order(kept: Kept) -> None:
    refused = await kept.settle(await kept.prepare(), REJECTED)
    other = order(offset=7, amount_gbp="700.00")

    (again,) = await kept.ledger.prepare([order()], token=kept.token, claimed=1)
    (anew,) = await kept.ledger.prepare([other], token=kept.token, claimed=8)

    assert isinstance(again, Entry)
    assert (again.state, again.sequence) == (EffectState.REJECTED, refused.sequence)
    assert isinstance(anew, Entry)
    assert (anew.order, anew.state, anew.verdict) == (other, EffectState.PREPARED, None)
    assert anew.sequence == refused.sequence + 1
    # What one that was stopped remembers of the first order sends nothing.
    assert isinstance(
        await kept.ledger.begin_send(
            replace(refused, state=EffectState.PREPARED, sequence=1),
            verdict=NO_ANSWER,
            token=kept.token,
            read_back_in_s=1,
        ),
        Moved,
    )


async def test_what_was_rejected_unsent_and_done_by_hand_keeps_its_key(kept: Kept) -> None:
    refused = await kept.settle(await kept.prepare(), REJECTED)

    by_hand = await kept.settle(refused, BY_HAND, by_lane=False)

    assert (by_hand.state, by_hand.sends, by_hand.is_told) == (EffectState.COMMITTED, 0, False)
    assert (by_hand.settled_by, by_hand.judged_again) == (BY_HAND.settled_by, None)
    (again,) = await kept.ledger.prepare([order(offset=7)], token=kept.token, claimed=8)
    (other,) = await kept.ledger.prepare([order(offset=8, amount_gbp="700.00")], token=kept.token, claimed=9)
    assert isinstance(again, Entry)
    assert (again.state, again.sequence) == (EffectState.COMMITTED, by_hand.sequence)
    assert isinstance(other, Collided)


@pytest.mark.parametrize(
    "settlement", [COMMITTED, replace(BY_HAND, state=EffectState.ABSENT, status=None), REJECTED]
)
async def test_what_was_rejected_unsent_has_no_other_outcome(kept: Kept, settlement: Settlement) -> None:
    refused = await kept.settle(await kept.prepare(), REJECTED)

    with pytest.raises(ValueError, match="no way"):
        await kept.settle(refused, settlement)


async def test_what_was_sent_and_rejected_keeps_its_key(kept: Kept) -> None:
    refused = await kept.settle(await kept.send(), REJECTED)

    (found,) = await kept.ledger.prepare([order(offset=7)], token=kept.token, claimed=8)

    assert isinstance(found, Entry)
    assert (found.state, found.sequence) == (EffectState.REJECTED, refused.sequence)


@pytest.mark.parametrize("settlement", [COMMITTED, ABSENT, UNKNOWN])
async def test_what_was_not_sent_is_neither_done_nor_absent(kept: Kept, settlement: Settlement) -> None:
    with pytest.raises(ValueError, match="no way"):
        await kept.settle(await kept.prepare(), settlement)


@pytest.mark.parametrize("settlement", [COMMITTED, REJECTED])
async def test_what_is_settled_stays_and_is_never_sent_again(kept: Kept, settlement: Settlement) -> None:
    settled = await kept.settle(await kept.send(), settlement)

    with pytest.raises(ValueError, match="not sent again"):
        await kept.begin(settled)
    with pytest.raises(ValueError, match="no way"):
        await kept.settle(settled, ABSENT)


async def test_an_unknown_effect_is_never_sent_again(kept: Kept) -> None:
    with pytest.raises(ValueError, match="not sent again"):
        await kept.begin(await kept.send())


async def test_an_absent_effect_is_sent_once_more_and_no_third_time(kept: Kept) -> None:
    absent = await kept.settle(await kept.send(), ABSENT)
    assert absent.is_open

    again = await kept.begin(absent)

    assert (again.state, again.sends, again.sequence) == (EffectState.UNKNOWN, 2, 4)
    with pytest.raises(ValueError, match="not sent again"):
        await kept.begin(await kept.settle(again, ABSENT))


async def test_a_late_answer_may_show_that_an_absent_effect_stands(kept: Kept) -> None:
    absent = await kept.settle(await kept.send(), ABSENT)

    assert (await kept.settle(absent, COMMITTED)).state is EffectState.COMMITTED


async def test_what_a_person_called_absent_is_closed(kept: Kept) -> None:
    sent = await kept.send()
    word = replace(ABSENT, settled_by=SettledBy("ann", "the bank says so"))

    settled = await kept.settle(sent, word, by_lane=False)

    assert not settled.is_open
    assert settled.settled_by == SettledBy("ann", "the bank says so")
    with pytest.raises(ValueError, match="not sent again"):
        await kept.begin(settled)


async def test_what_is_open_is_due_at_its_time_and_then_after_a_pause(kept: Kept) -> None:
    await kept.send("later", read_back_in_s=60)
    await kept.send("now", read_back_in_s=0)

    assert [each.key for each in await kept.ledger.take_due(10)] == ["now"]
    assert await kept.ledger.take_due(10) == ()


async def test_of_two_reconcilers_one_takes_what_is_due(kept: Kept) -> None:
    for place in range(4):
        await kept.send(f"k{place}", read_back_in_s=0)

    first, second = await asyncio.gather(kept.ledger.take_due(3), kept.ledger.take_due(3))

    taken = [each.key for each in (*first, *second)]
    assert sorted(taken) == ["k0", "k1", "k2", "k3"]


async def test_what_a_lane_settles_is_told_by_the_lane(kept: Kept) -> None:
    settled = await kept.settle(await kept.send(read_back_in_s=0), COMMITTED, read_back_in_s=0)

    assert settled.is_told
    assert await kept.ledger.take_due(10) == ()


async def test_what_nobody_has_told_of_stays_due_until_it_is_told(kept: Kept) -> None:
    settled = await kept.settle(await kept.send(), COMMITTED, by_lane=False, read_back_in_s=0)
    assert not settled.is_told
    assert (await kept.ledger.count_open()).count == 0

    (due,) = await kept.ledger.take_due(10)
    await kept.ledger.tell(due)

    assert (due.key, due.is_told) == ("k1", False)
    told = await kept.ledger.read("k1")
    assert told is not None
    assert told.is_told


async def test_telling_of_an_entry_that_moved_on_changes_nothing(kept: Kept) -> None:
    sent = await kept.send()
    absent = await kept.settle(sent, ABSENT, by_lane=False)
    settled = await kept.settle(absent, COMMITTED, by_lane=False)

    await kept.ledger.tell(absent)

    stands = await kept.ledger.read("k1")
    assert stands is not None
    assert (stands.state, stands.is_told) == (settled.state, False)


async def test_what_stays_unknown_keeps_what_is_known_of_it(kept: Kept) -> None:
    doubtful = Verdict(Status.UNKNOWN, Stage.POSTCONDITION, ("effect_not_verified",), "wait")
    sent = await kept.send()

    noted = await kept.settle(sent, replace(UNKNOWN, verdict=doubtful, provider_id="tr_9"))

    assert (noted.state, noted.verdict, noted.provider_id) == (EffectState.UNKNOWN, doubtful, "tr_9")
    assert noted.is_open
    assert (noted.sends, noted.sequence) == (1, 3)


async def test_held_effects_come_the_oldest_first_and_bounded(kept: Kept) -> None:
    for key in ("a", "b", "c"):
        await kept.send(key)

    assert [each.key for each in await kept.ledger.held(2)] == ["a", "b"]


async def confirmed(kept: Kept, key: str, *digests: str, **changes: Any) -> Entry | Collided:
    wanted = replace(order(key, **changes), confirmations=digests)
    (found,) = await kept.ledger.prepare([wanted], token=kept.token, claimed=1)
    return found


async def holder(kept: Kept, key: str = "k1") -> Entry:
    """An effect that has used the confirmation `c1` up."""
    entry = await confirmed(kept, key, "c1")
    assert isinstance(entry, Entry)
    assert (entry.confirmation, entry.spent_by, entry.is_unconfirmed) == ("c1", None, False)
    return entry


async def test_one_confirmation_allows_one_effect(kept: Kept) -> None:
    first = await holder(kept)

    orders = [replace(order(key), confirmations=("c1",)) for key in ("k2", "k3", "k1", "k4")]
    found = await kept.ledger.prepare(orders, token=kept.token, claimed=2)

    assert found[2] == first
    for each in (found[0], found[1], found[3]):
        assert isinstance(each, Entry)
        assert (each.confirmation, each.spent_by, each.is_unconfirmed) == (None, "k1", True)
        with pytest.raises(ValueError, match="no confirmation left"):
            await kept.begin(each)
    settled = await kept.settle(await kept.begin(first), COMMITTED)
    assert settled.confirmation == "c1"
    assert await confirmed(kept, "k2", "c1") == found[0]


async def test_two_effects_of_one_batch_use_two_confirmations(kept: Kept) -> None:
    orders = [replace(order(key), confirmations=("c1", "c2")) for key in ("k1", "k2", "k3")]

    found = await kept.ledger.prepare(orders, token=kept.token, claimed=1)

    assert [each.confirmation for each in found if isinstance(each, Entry)] == ["c1", "c2", None]


REFUSED = replace(REJECTED, verdict=Verdict(Status.REJECT, Stage.OUTCOME, ("provider_refused:no",), "no"))
DIFFERS = replace(REJECTED, verdict=Verdict(Status.REJECT, Stage.READBACK, ("amount",), "no"))
TO_A_PERSON = replace(REJECTED, verdict=Verdict(Status.REVIEW, Stage.AUTHORITY, ("not_automatic",), "do"))
ABSENT_BY_HAND = replace(ABSENT, settled_by=SettledBy("ann", "not on the statement"))


@pytest.mark.parametrize(
    ("is_sent", "settlements", "is_free"),
    [
        (False, [REJECTED], True),
        (False, [TO_A_PERSON], False),
        (True, [REFUSED], True),
        (True, [ABSENT, ABSENT_BY_HAND], True),
        (True, [COMMITTED], False),
        (True, [UNKNOWN], False),
        (True, [ABSENT], False),
        (True, [DIFFERS], False),
        (False, [], False),
    ],
)
async def test_a_confirmation_is_free_again_when_it_is_known_that_nothing_came_of_its_effect(
    kept: Kept, is_sent: bool, settlements: list[Settlement], is_free: bool
) -> None:
    entry = await holder(kept)
    if is_sent:
        entry = await kept.begin(entry)
    for each in settlements:
        entry = await kept.settle(entry, each)

    found = await confirmed(kept, "k2", "c1")

    assert isinstance(found, Entry)
    assert found.confirmation == ("c1" if is_free else None)
    assert entry.is_undone == is_free


async def test_what_was_sent_twice_keeps_its_confirmation_when_it_is_refused(kept: Kept) -> None:
    entry = await kept.begin(await holder(kept))
    entry = await kept.settle(await kept.begin(await kept.settle(entry, ABSENT)), REFUSED)

    found = await confirmed(kept, "k2", "c1")

    assert isinstance(found, Entry)
    assert (entry.sends, found.confirmation) == (2, None)


async def test_what_waits_for_a_confirmation_takes_it_when_it_is_free(kept: Kept) -> None:
    entry = await holder(kept)
    waiting = await confirmed(kept, "k2", "c1")
    await kept.settle(entry, REJECTED)

    found = await confirmed(kept, "k2", "c1")

    assert isinstance(waiting, Entry)
    assert isinstance(found, Entry)
    assert (waiting.spent_by, found.spent_by, found.confirmation) == ("k1", None, "c1")
    # And the other order under the key that was left free finds it gone.
    again = await confirmed(kept, "k1", "c1", amount_gbp="700.00")
    assert isinstance(again, Entry)
    assert (again.state, again.spent_by) == (EffectState.PREPARED, "k2")


async def test_a_collision_uses_nothing_up(kept: Kept) -> None:
    await kept.prepare("k1")

    assert isinstance(await confirmed(kept, "k1", "c1", amount_gbp="700.00"), Collided)

    assert await holder(kept, "k2")
