"""A ledger restored from its receipts: nothing that stands is changed, nothing is sent for want of memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis
from ticketgate.agents.effects.executor import Executor, receipt_of
from ticketgate.agents.effects.ledger import Entry, Settlement
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState, JudgedAgain
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.ledger.ledger import Ledger
from ticketgate.store.ledger.ledger_rebuild import STEPS_LOST_AT_MOST, Remembered, RestoredEffects, restore

from ..support.effects import LANE, Bank, Scene, order

pytestmark = pytest.mark.redis
ALWAYS = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
TTL = timedelta(days=1)
PROPOSAL = {"case_id": "c"}


async def now_ms(redis: Redis) -> int:
    seconds, _ = await redis.time()
    return seconds * 1000


async def receipt(state: EffectState, *, key: str = "k1", sends: int = 1) -> EffectReceipt:
    """The receipt of an effect in a state, made the way it comes about."""
    scene = Scene(Bank(is_idempotent_by_key=sends > 1))
    (prepared,) = await scene.executor.prepare([order(key)], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)
    if state is EffectState.PREPARED and sends == 0:
        return receipt_of(prepared)
    if state is EffectState.COMMITTED:
        return receipt_of(await scene.executor.carry_out(prepared, token=LANE))
    scene.bank.answers.extend(["lost_before"] * 2)
    absent = await scene.executor.carry_out(prepared, token=LANE)
    if sends > 1:
        await scene.reconciler.run_once()
        return next(each for each in scene.told if each.effect_state is state and each.sends == sends)
    return receipt_of(absent)


@pytest.fixture
def ledger(redis: Redis, keys: Keys) -> Ledger:
    return Ledger(redis, keys, ttl=TTL, durability=ALWAYS)


async def test_what_was_prepared_comes_back_as_unknown_and_due(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    told = await receipt(EffectState.PREPARED, sends=0)

    done = await restore(redis, keys, [Remembered(told, await now_ms(redis))], ttl=TTL)

    assert done == RestoredEffects(restored=1, open=1)
    (entry,) = await ledger.take_due(10)
    assert (entry.state, entry.sends, entry.is_open, entry.is_restored) == (
        EffectState.UNKNOWN,
        1,
        True,
        True,
    )
    assert entry.sequence > told.sequence
    assert entry.order == order()
    assert (await ledger.count_open()).count == 1


async def test_what_is_open_goes_on_beyond_all_that_a_ledger_rebuilt_before_can_have_told(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    told = Remembered(await receipt(EffectState.PREPARED), await now_ms(redis), is_whole=True)
    sequences = []
    for _ in range(2):
        await restore(redis, keys, [told], ttl=TTL)
        (entry,) = await ledger.held(10)
        sequences.append(entry.sequence)
        await redis.flushall()
        await asyncio.sleep(0.02)

    assert sequences[1] - sequences[0] > STEPS_LOST_AT_MOST


async def test_a_second_sending_that_was_announced_is_remembered_as_made(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    told = await receipt(EffectState.PREPARED, sends=2)

    await restore(redis, keys, [Remembered(told, await now_ms(redis), is_whole=True)], ttl=TTL)

    entry = await ledger.read("k1")
    assert entry is not None
    assert (entry.state, entry.sends) == (EffectState.UNKNOWN, 2)


async def test_what_was_settled_comes_back_settled_for_what_is_left_of_its_life(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    told = await receipt(EffectState.COMMITTED)
    half_a_day_ago = await now_ms(redis) - 43_200_000

    await restore(redis, keys, [Remembered(told, half_a_day_ago)], ttl=TTL)

    entry = await ledger.read("k1")
    assert entry is not None
    assert receipt_of(entry).to_json() | {"at": None} == told.to_json() | {"at": None}
    assert await redis.pttl(keys.effect("k1")) <= 43_200_000
    assert await ledger.take_due(10) == ()


async def test_what_an_effect_was_stopped_on_comes_back_with_it(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    scene = Scene()
    (prepared,) = await scene.executor.prepare([order()], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)
    denied = Settlement(
        state=EffectState.REJECTED,
        verdict=Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "ask"),
        judged_again=JudgedAgain({"authority": None, "world": {}}, datetime(2026, 9, 1, 12, tzinfo=UTC)),
    )
    told = receipt_of(await scene.executor.stop(prepared, denied, token=LANE))

    await restore(redis, keys, [Remembered(told, await now_ms(redis))], ttl=TTL)

    entry = await ledger.read("k1")
    assert entry is not None
    assert receipt_of(entry).judged_again == told.judged_again == denied.judged_again


async def test_what_is_over_is_left_out_but_never_what_is_open(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    over = await receipt(EffectState.COMMITTED)
    still_open = await receipt(EffectState.PREPARED, key="k2", sends=0)

    done = await restore(redis, keys, [Remembered(over, 1_000), Remembered(still_open, 1_000)], ttl=TTL)

    assert done == RestoredEffects(restored=1, open=1, expired=1)
    assert [each.key for each in await ledger.held(10)] == ["k2"]


async def test_what_stands_is_never_changed_and_a_second_run_changes_nothing(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    told = [Remembered(await receipt(EffectState.COMMITTED), await now_ms(redis))]
    (stands,) = await ledger.prepare([order()], token=None, claimed=0)

    first = await restore(redis, keys, told, ttl=TTL)
    second = await restore(redis, keys, told, ttl=TTL)

    assert first == second == RestoredEffects(present=1)
    assert await ledger.read("k1") == stands


async def test_a_dry_run_says_what_would_come_of_it(redis: Redis, keys: Keys) -> None:
    told = [Remembered(await receipt(EffectState.PREPARED, sends=0), await now_ms(redis))]

    done = await restore(redis, keys, told, ttl=TTL, dry_run=True)

    assert done == RestoredEffects(restored=1, open=1)
    assert await redis.dbsize() == 0


@pytest.mark.parametrize("is_whole", [True, False])
async def test_what_is_absent_after_a_rebuild_is_sent_again_only_if_its_record_is_at_hand(
    redis: Redis, keys: Keys, ledger: Ledger, is_whole: bool
) -> None:
    told = await receipt(EffectState.PREPARED, sends=0)
    await restore(redis, keys, [Remembered(told, await now_ms(redis), is_whole=is_whole)], ttl=TTL)
    bank = Bank()

    async def announce(receipts: object) -> None:
        pass

    reconciler = Reconciler(ledger, Executor(ledger, {"bank": bank}), judge_again=None, announce=announce)
    (entry,) = await reconciler.run_once()

    assert bank.sent == (["k1"] if is_whole else [])
    assert entry.state is (EffectState.COMMITTED if is_whole else EffectState.ABSENT)


async def test_the_proposal_of_a_case_comes_back_with_it(redis: Redis, keys: Keys, ledger: Ledger) -> None:
    told = await receipt(EffectState.PREPARED, sends=0)

    await restore(redis, keys, [Remembered(told, 0, PROPOSAL, is_whole=True)], ttl=TTL)

    entry = await ledger.read("k1")
    assert entry is not None
    assert (entry.order.proposal, entry.is_restored) == (PROPOSAL, False)


async def confirmed(ledger: Ledger, key: str) -> Entry:
    (entry,) = await ledger.prepare([replace(order(key), confirmations=("c1",))], token=None, claimed=0)
    assert isinstance(entry, Entry)
    return entry


@pytest.mark.parametrize("state", [EffectState.PREPARED, EffectState.COMMITTED, EffectState.ABSENT])
async def test_a_restored_effect_has_used_its_confirmation_up(
    redis: Redis, keys: Keys, ledger: Ledger, state: EffectState
) -> None:
    told = replace(await receipt(state, sends=0 if state is EffectState.PREPARED else 1), confirmation="c1")
    await restore(redis, keys, [Remembered(told, await now_ms(redis))], ttl=TTL)

    rival = await confirmed(ledger, "k2")

    assert (rival.confirmation, rival.spent_by) == (None, "k1")
    stands = await ledger.read("k1")
    assert stands is not None
    assert stands.confirmation == "c1"


async def test_a_restored_effect_of_which_nothing_came_leaves_its_confirmation(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    denied = Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "no")
    prepared = await receipt(EffectState.PREPARED, sends=0)
    told = replace(prepared, effect_state=EffectState.REJECTED, verdict=denied, confirmation="c1", sequence=2)
    last = replace(await receipt(EffectState.COMMITTED, key="k2"), confirmation="c1")
    remembered = [Remembered(each, await now_ms(redis)) for each in (last, told)]

    await restore(redis, keys, remembered, ttl=TTL)

    assert (await confirmed(ledger, "k3")).spent_by == "k2"
    await redis.flushall()
    await restore(redis, keys, remembered[1:], ttl=TTL)
    assert (await confirmed(ledger, "k3")).confirmation == "c1"


@pytest.mark.parametrize("is_standing", [True, False])
async def test_of_two_effects_of_one_confirmation_neither_is_sent_again(
    redis: Redis, keys: Keys, ledger: Ledger, is_standing: bool
) -> None:
    """A lane wrote that the first is prepared only after Redis had lost it, and another took the confirmation."""
    prepared = replace(await receipt(EffectState.PREPARED, sends=0), confirmation="c1")
    absent = replace(await receipt(EffectState.ABSENT, key="k2"), confirmation="c1")
    last = [Remembered(each, await now_ms(redis), is_whole=True) for each in (prepared, absent)]

    if is_standing:
        await restore(redis, keys, last[1:], ttl=TTL)
        await restore(redis, keys, last[:1], ttl=TTL)
    else:
        await restore(redis, keys, last, ttl=TTL)

    for key in ("k1", "k2"):
        entry = await ledger.read(key)
        assert entry is not None
        assert (entry.is_open, entry.is_restored) == (True, True)


async def test_what_was_not_sent_gives_its_confirmation_up_to_what_may_have_been(
    redis: Redis, keys: Keys, ledger: Ledger
) -> None:
    assert (await confirmed(ledger, "k2")).confirmation == "c1"
    told = replace(await receipt(EffectState.PREPARED, sends=0), confirmation="c1")

    await restore(redis, keys, [Remembered(told, await now_ms(redis), is_whole=True)], ttl=TTL)

    assert ((await confirmed(ledger, "k2")).is_unconfirmed, (await confirmed(ledger, "k3")).spent_by) == (
        True,
        "k1",
    )
    stands = await ledger.read("k1")
    assert stands is not None
    assert (stands.state, stands.is_restored) == (EffectState.UNKNOWN, False)
