"""What was left open: read back with pauses, sent once more only where that is safe, or held for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.ledger import Entry, Settlement
from ticketgate.agents.effects.port import CannotRead, Found, NotFound, ReadBackResult, Refused
from ticketgate.agents.effects.reconcile import MOST_BEGUN, NotHeld, Reconciler
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState, EffectStatus, JudgedAgain
from ticketgate.codecs.verdict import Stage, Status, Verdict

from ...support.effects import Bank, Scene, order, said

U, C, R, A, P = (
    EffectState.UNKNOWN,
    EffectState.COMMITTED,
    EffectState.REJECTED,
    EffectState.ABSENT,
    EffectState.PREPARED,
)
PROPOSAL = {"case_id": "c", "attempt": 1}
AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def told(scene: Scene) -> list[tuple[EffectState, int, int]]:
    """State, sequence and sends of each receipt."""
    return [(each.effect_state, each.sequence, each.sends) for each in scene.told]


async def left_open(scene: Scene, *answers: Any) -> Entry:
    """An effect whose answer was lost before it was committed, and that the lane could not read back."""
    scene.bank.answers.extend(answers or ("lost_before",))
    scene.bank.readings.append(CannotRead())
    entry = await scene.carry_out()
    assert entry.state is U
    return entry


async def test_what_is_found_later_is_settled_and_told() -> None:
    scene = Scene()
    await left_open(scene, "lost_after")

    entry = await scene.reconcile(after_s=10)

    assert (entry.state, entry.status) == (C, EffectStatus.VERIFIED_BY_READBACK)
    assert told(scene) == [(C, 3, 1)]
    assert entry.is_told


async def test_nothing_is_looked_at_before_it_is_due() -> None:
    scene = Scene(Bank(settle_s=30))
    await left_open(scene)
    reads = scene.bank.reads

    await scene.reconcile(after_s=29)

    assert scene.bank.reads == reads


async def test_what_is_absent_after_its_settle_time_is_sent_once_more_under_its_key() -> None:
    scene = Scene(Bank(settle_s=30))
    await left_open(scene)

    entry = await scene.reconcile(after_s=31)

    assert (entry.state, entry.sends) == (C, 2)
    assert scene.bank.sent == ["k1", "k1"]


async def test_the_second_sending_is_announced_before_it_leaves_and_settled_after() -> None:
    scene = Scene()
    await left_open(scene)

    entry = await scene.reconcile(after_s=10)

    assert said(entry) == (C, "postcondition", ("transport_timed_out_before_commit",))
    assert (entry.status, entry.sends) == (EffectStatus.CREATED, 2)
    assert told(scene) == [(A, 3, 1), (P, 4, 2), (C, 5, 2)]


async def test_there_is_no_third_sending_however_often_it_is_looked_at() -> None:
    scene = Scene()
    await left_open(scene, "lost_before", "lost_before")

    entry = await scene.reconcile_often(50)

    assert scene.bank.sent == ["k1", "k1"]
    assert (entry.state, entry.is_open) == (A, True)
    assert [each.key for each in await scene.reconciler.held()] == ["k1"]


async def test_what_turns_up_after_it_was_absent_is_committed() -> None:
    scene = Scene(Bank(is_idempotent_by_key=False))
    await left_open(scene)
    assert (await scene.reconcile(after_s=10)).state is A
    scene.bank.transfers.append(order().command)

    entry = await scene.reconcile(after_s=700)

    assert (entry.state, entry.is_open) == (C, False)


async def test_a_provider_that_is_not_idempotent_is_never_sent_to_again() -> None:
    scene = Scene(Bank(is_idempotent_by_key=False))
    await left_open(scene)

    entry = await scene.reconcile_often(20)

    assert (entry.state, scene.bank.sent) == (A, ["k1"])


@pytest.mark.parametrize("reading", [CannotRead(), NotFound(is_authoritative=False), OSError()])
async def test_without_an_authoritative_read_back_nothing_is_sent_again(reading: Any) -> None:
    scene = Scene()
    await left_open(scene)

    scene.bank.readings.extend([reading] * 20)
    entry = await scene.reconcile_often(20)

    assert (entry.state, scene.bank.sent) == (U, ["k1"])


async def test_an_absence_is_read_once_more_before_the_second_sending() -> None:
    scene = Scene()
    scene.bank.answers.append("lost_before")
    assert (await scene.carry_out()).state is A
    scene.bank.readings.append(CannotRead())

    assert (await scene.reconcile()).state is A
    assert scene.bank.sent == ["k1"]


async def test_a_success_that_cannot_be_found_is_not_sent_again() -> None:
    scene = Scene()
    scene.bank.readings.extend([NotFound()] * 5)
    assert said(await scene.carry_out())[1] == "postcondition"

    entry = await scene.reconcile(after_s=10)

    assert (entry.state, entry.is_open, scene.bank.sent) == (A, True, ["k1"])


async def test_a_success_that_turns_up_late_or_otherwise_is_settled() -> None:
    late, other = Scene(), Scene()
    late.bank.readings.append(NotFound())
    other.bank.readings.extend([CannotRead(), Found("tr_0", {"amount_gbp": "6.00"})])
    await late.carry_out()
    await other.carry_out()

    assert said(await late.reconcile(after_s=10)) == (C, "readback", ("verified_late",))
    assert said(await other.reconcile(after_s=10))[:2] == (R, "readback")


async def test_a_permission_revoked_meanwhile_stops_the_second_sending() -> None:
    denied = Settlement(
        state=R,
        verdict=Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "ask"),
        judged_again=JudgedAgain({"authority": None, "world": {}}, AT),
    )
    judged: list[Entry] = []

    async def judge_again(entry: Entry) -> Settlement | None:
        judged.append(entry)
        return denied

    scene = Scene(judge_again=judge_again)
    scene.bank.answers.append("lost_before")
    await scene.carry_out(order(proposal=PROPOSAL))

    entry = await scene.reconcile(after_s=10)

    assert said(entry) == (R, "authority", ("tool_not_delegated",))
    assert scene.bank.sent == ["k1"]
    assert [each.order.proposal for each in judged] == [PROPOSAL]
    assert told(scene) == [(R, 4, 1)]
    assert scene.told[0].judged_again == denied.judged_again


async def test_evidence_that_still_stands_lets_the_second_sending_go() -> None:
    async def judge_again(entry: Entry) -> Settlement | None:
        return None

    scene = Scene(judge_again=judge_again)
    scene.bank.answers.append("lost_before")
    await scene.carry_out(order(proposal=PROPOSAL))

    assert (await scene.reconcile(after_s=10)).state is C


async def test_without_evidence_a_case_is_held_and_not_sent_again() -> None:
    async def unavailable(entry: Entry) -> Settlement | None:
        raise RuntimeError("nobody answers")

    for judge_again in (None, unavailable):
        scene = Scene(judge_again=judge_again)
        scene.bank.answers.append("lost_before")
        await scene.carry_out(order(proposal=PROPOSAL))

        entry = await scene.reconcile(after_s=10)

        assert (entry.state, entry.is_open, scene.bank.sent) == (A, True, ["k1"])


async def test_a_refused_second_sending_tells_of_the_first() -> None:
    scene = Scene()
    await left_open(scene, "lost_before", Refused("closed"))

    assert said(await scene.reconcile(after_s=10)) == (
        R,
        "outcome",
        ("transport_timed_out_before_commit", "provider_refused:closed"),
    )


async def test_a_receipt_that_was_not_announced_is_announced_later() -> None:
    scene = Scene()
    await left_open(scene, "lost_after")
    announced = scene.reconciler._announce

    async def broken(receipts: Sequence[EffectReceipt]) -> None:
        raise OSError("no broker")

    scene.reconciler._announce = broken
    with pytest.raises(OSError, match="no broker"):
        await scene.reconcile(after_s=10)
    scene.reconciler._announce = announced

    entry = await scene.reconcile(after_s=10)

    assert (entry.state, entry.is_told) == (C, True)
    assert told(scene) == [(C, 3, 1)]


async def test_no_second_sending_without_its_receipt() -> None:
    scene = Scene()
    scene.bank.answers.append("lost_before")
    await scene.carry_out()

    async def broken(receipts: Sequence[EffectReceipt]) -> None:
        raise OSError("no broker")

    scene.reconciler._announce = broken
    with pytest.raises(OSError, match="no broker"):
        await scene.reconcile()

    assert scene.bank.sent == ["k1"]


async def test_one_effects_trouble_does_not_hold_up_the_others() -> None:
    scene = Scene()
    await left_open(scene, "lost_after")
    scene.bank.answers.append("lost_after")
    scene.bank.readings.append(CannotRead())
    strange = order("k2")
    await scene.carry_out(strange)
    scene.clock.passes(-0.5)
    scene.executor = Executor(scene.ledger, {}, clock=scene.clock)
    scene.reconciler._executor = scene.executor

    scene.clock.passes(60)
    looked = await scene.reconciler.run_once()

    assert [each.state for each in looked] == [U, U]


async def test_a_provider_that_does_not_answer_keeps_no_other_effect_waiting() -> None:
    scene = Scene()
    for key in ("k1", "k2", "k3"):
        scene.bank.answers.append("lost_after")
        scene.bank.readings.append(CannotRead())
        await scene.carry_out(order(key))
    is_over, others = asyncio.Event(), []
    read_back = scene.bank.read_back

    async def reads(key: str) -> ReadBackResult:
        if key == "k1":
            await is_over.wait()
            return CannotRead()
        others.append(key)
        if len(others) == 2:
            is_over.set()
        return await read_back(key)

    scene.bank.read_back = reads  # type: ignore[method-assign]
    scene.clock.passes(60)

    looked = await scene.reconciler.run_once()

    assert [(each.key, each.state) for each in looked] == [("k1", U), ("k2", C), ("k3", C)]


async def test_what_fails_for_one_is_raised_once_all_were_looked_at() -> None:
    scene = Scene()
    for key in ("k1", "k2"):
        scene.bank.answers.append("lost_after")
        scene.bank.readings.append(CannotRead())
        await scene.carry_out(order(key))

    async def announce(receipts: Sequence[EffectReceipt]) -> None:
        if receipts[0].idempotency_key == "k1":
            raise OSError("no broker")
        await scene.announce(receipts)

    scene.reconciler._announce = announce
    scene.clock.passes(60)

    with pytest.raises(OSError, match="no broker"):
        await scene.reconciler.run_once()

    assert [each.idempotency_key for each in scene.told] == ["k2"]


async def test_a_person_settles_what_is_held_and_says_why() -> None:
    for state, status in (
        (C, EffectStatus.SETTLED_BY_PERSON),
        (A, None),
        (R, None),
    ):
        scene = Scene()
        await left_open(scene)

        entry = await scene.reconciler.settle("k1", state, actor="ann", reason="asked the bank")

        assert (entry.state, entry.status, entry.is_open) == (state, status, False)
        assert entry.settled_by is not None
        assert entry.settled_by.actor == "ann"
        assert scene.told[-1].settled_by == entry.settled_by
        assert await scene.reconciler.held() == ()
        scene.clock.passes(10_000)
        assert await scene.reconciler.run_once() == []


@pytest.mark.parametrize("state", [A, R])
async def test_nobody_says_that_it_was_not_done_while_it_may_be_on_its_way(state: EffectState) -> None:
    scene = Scene(Bank(settle_s=30))
    await left_open(scene)
    scene.clock.passes(27.5)

    with pytest.raises(NotHeld, match="on its way for 3 s; say"):
        await scene.reconciler.settle("k1", state, actor="ann", reason="not on the statement")

    scene.clock.passes(2.5)
    assert (await scene.reconciler.settle("k1", state, actor="ann", reason="still not")).state is state


async def test_that_it_was_done_can_be_said_at_any_time() -> None:
    scene = Scene(Bank(settle_s=30))
    await left_open(scene)

    assert (await scene.reconciler.settle("k1", C, actor="ann", reason="on the statement")).state is C


async def test_who_did_by_hand_what_was_never_sent_says_so_and_nobody_does_it_again() -> None:
    scene = Scene(Bank(refuses_to_prepare=True))
    assert (await scene.carry_out()).is_stopped
    with pytest.raises(NotHeld, match="as committed what was never sent"):
        await scene.reconciler.settle("k1", A, actor="ann", reason="it was not done")

    entry = await scene.reconciler.settle("k1", C, actor="ann", reason="paid at the counter")

    assert (entry.state, entry.status, entry.sends) == (C, EffectStatus.SETTLED_BY_PERSON, 0)
    assert scene.told[-1].settled_by == entry.settled_by
    scene.bank.refuses_to_prepare = False
    again = await scene.carry_out(order(offset=7))
    assert (again.status, scene.bank.sent) == (EffectStatus.SETTLED_BY_PERSON, [])


async def test_only_what_is_held_can_be_settled_by_a_person_who_says_who_and_why() -> None:
    scene = Scene()
    await scene.carry_out()

    with pytest.raises(NotHeld, match="is committed"):
        await scene.reconciler.settle("k1", R, actor="ann", reason="because")
    with pytest.raises(NotHeld, match="not in the ledger"):
        await scene.reconciler.settle("k9", R, actor="ann", reason="because")
    with pytest.raises(ValueError, match="who they are"):
        await scene.reconciler.settle("k1", R, actor=" ", reason="because")
    with pytest.raises(ValueError, match="not unknown"):
        await scene.reconciler.settle("k1", U, actor="ann", reason="because")


async def test_evidence_is_looked_at_once_more_after_a_broker_that_kept_the_announcement_waiting() -> None:
    is_announced = False

    async def judge_again(entry: Entry) -> None:
        if is_announced:
            raise RuntimeError("withdrawn, and nobody answers any more")

    async def announce(receipts: Sequence[EffectReceipt]) -> None:
        nonlocal is_announced
        is_announced |= receipts[0].effect_state is P

    scene = Scene(judge_again=judge_again)
    scene.reconciler._announce = announce
    scene.bank.answers.append("lost_before")
    await scene.carry_out(order(proposal=PROPOSAL))

    entry = await scene.reconcile(after_s=10)

    assert is_announced
    assert (entry.state, entry.is_open, scene.bank.sent) == (A, True, ["k1"])


async def test_an_effect_that_is_not_automatic_any_more_is_held_and_not_sent_again() -> None:
    scene = Scene()
    scene.reconciler._may_send = lambda entry: entry.key != "k1"
    await left_open(scene)

    entry = await scene.reconcile_often(3)

    assert (entry.state, entry.is_open, scene.bank.sent) == (A, True, ["k1"])
    scene.bank.transfers.append(order().command)
    assert (await scene.reconcile(after_s=700)).state is C


async def test_what_is_settled_is_not_told_again_at_once() -> None:
    scene = Scene()
    await left_open(scene)
    announce = scene.reconciler._announce

    async def beside_another(receipts: Sequence[EffectReceipt]) -> None:
        scene.reconciler._announce = announce
        # Another reconciler looks while this announcement is on its way.
        assert await scene.ledger.take_due(10) == ()
        await announce(receipts)

    scene.reconciler._announce = beside_another
    await scene.reconciler.settle("k1", C, actor="ann", reason="asked the bank")

    assert told(scene) == [(C, 3, 1)]


class LooksInMemory:
    """Looks that began, as the processes before left them."""

    def __init__(self, **begun: int) -> None:
        self.counts = dict(begun)
        self.seen: list[str] = []

    async def begun(self, keys: Collection[str]) -> Mapping[str, int]:
        return {key: self.counts.get(key, 0) for key in keys}

    async def begin(self, key: str) -> None:
        self.counts[key] = self.counts.get(key, 0) + 1
        self.seen.append(key)

    async def end(self, key: str) -> None:
        self.counts.pop(key, None)


def looking(scene: Scene, looks: LooksInMemory) -> Scene:
    scene.reconciler = Reconciler(
        scene.ledger, scene.executor, judge_again=None, announce=scene.announce, looks=looks
    )
    return scene


async def test_an_effect_on_which_process_after_process_died_is_left_to_a_person() -> None:
    scene = looking(Scene(), looks := LooksInMemory(k1=MOST_BEGUN))
    await left_open(scene)
    reads = scene.bank.reads

    entry = await scene.reconcile_often(3)

    assert (entry.state, scene.bank.reads, looks.seen) == (U, reads, [])
    assert [each.key for each in await scene.ledger.held(10)] == ["k1"]
    settled = await scene.reconciler.settle("k1", C, actor="op", reason="seen")
    assert settled.state is C


async def test_a_look_that_ends_counts_for_nothing_whatever_came_of_it() -> None:
    scene = looking(Scene(), looks := LooksInMemory(k1=MOST_BEGUN - 1))
    await left_open(scene)
    scene.bank.readings.append(OSError("reset by peer"))

    await scene.reconcile(after_s=10)

    assert (looks.seen, looks.counts) == (["k1"], {})
