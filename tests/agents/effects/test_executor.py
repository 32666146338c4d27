"""The lane's part: each effect sent at most once, read back, settled; and what each answer ends in."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import Any

import pytest
from ticketgate.agents.effects.executor import Executor, receipt_of
from ticketgate.agents.effects.faults import ProviderMissing
from ticketgate.agents.effects.ledger import Collided, Entry, Moved, Settlement
from ticketgate.agents.effects.port import (
    LATEST_START_S,
    CannotRead,
    Collision,
    Executed,
    ExecuteResult,
    Found,
    NotFound,
    Prepared,
    Refused,
)
from ticketgate.codecs.records.receipt import EffectState, EffectStatus, JudgedAgain
from ticketgate.codecs.verdict import Stage, Status, Verdict

from ...support.effects import ARGUMENTS, LANE, Bank, Scene, order, said

U, C, R, A = EffectState.UNKNOWN, EffectState.COMMITTED, EffectState.REJECTED, EffectState.ABSENT


async def test_a_success_that_is_read_back_equal_is_committed() -> None:
    scene = Scene()

    entry = await scene.carry_out()

    assert said(entry) == (C, "postcondition", ())
    assert (entry.status, entry.provider_id) == (EffectStatus.CREATED, "tr_0")
    assert entry.observed == {**ARGUMENTS, "status": "booked"}
    assert (len(scene.bank.sent), scene.bank.reads) == (1, 1)


async def test_what_stood_before_is_replayed() -> None:
    scene = Scene()
    scene.bank.transfers.append(order().command)

    entry = await scene.carry_out()

    assert entry.status is EffectStatus.REPLAYED
    assert len(scene.bank.transfers) == 1


async def test_a_lost_answer_whose_effect_stands_is_verified_by_reading_back() -> None:
    scene = Scene()
    scene.bank.answers.append("lost_after")

    entry = await scene.carry_out()

    assert said(entry) == (C, "readback", ("transport_timed_out_after_commit",))
    assert entry.status is EffectStatus.VERIFIED_BY_READBACK


@pytest.mark.parametrize("reading", [CannotRead(), NotFound(is_authoritative=False), OSError("gone")])
async def test_a_lost_answer_that_nothing_settles_is_held_and_not_sent_again(reading: Any) -> None:
    scene = Scene()
    scene.bank.answers.append("lost_before")
    scene.bank.readings.append(reading)

    entry = await scene.carry_out()

    assert said(entry) == (U, "outcome", ("timeout_and_no_readback",))
    assert scene.bank.sent == ["k1"]
    assert (await scene.ledger.count_open()).count == 1


async def test_not_found_before_the_settle_time_says_nothing() -> None:
    scene = Scene(Bank(settle_s=30))
    scene.bank.answers.append("lost_before")

    assert (await scene.carry_out()).state is U


async def test_a_lane_never_sends_a_second_time_itself() -> None:
    scene = Scene()
    scene.bank.answers.append("lost_before")

    entry = await scene.carry_out()
    again = await scene.executor.carry_out(entry, token=LANE)

    assert (entry.state, again.state) == (A, A)
    assert scene.bank.sent == ["k1"]


async def test_what_stands_and_differs_is_rejected_with_every_difference() -> None:
    scene = Scene()
    scene.bank.answers.append("lost_after")
    scene.bank.readings.append(Found("tr_9", {"payee_id": "supplier_8", "amount_gbp": "60.00"}))

    entry = await scene.carry_out()

    assert said(entry) == (
        R,
        "readback",
        (
            "payee_id:wanted=supplier_7:observed=supplier_8",
            "amount_gbp:wanted=600.00:observed=60.00",
        ),
    )


@pytest.mark.parametrize(
    "reading", [CannotRead(), NotFound(), Found("tr_other", ARGUMENTS), Found("tr_0", {}), ValueError("?")]
)
async def test_a_success_that_does_not_read_back_so_stays_open(reading: Any) -> None:
    scene = Scene()
    scene.bank.readings.append(reading)

    entry = await scene.carry_out()

    assert said(entry) == (U, "postcondition", ("effect_not_verified",))
    assert entry.provider_id == "tr_0"


async def test_a_refusal_is_final_and_tells_why() -> None:
    scene = Scene()
    scene.bank.answers.append(Refused("the account is closed"))

    assert said(await scene.carry_out()) == (R, "outcome", ("provider_refused:the account is closed",))


async def test_the_providers_collision_is_rejected() -> None:
    scene = Scene()
    scene.bank.answers.append(Collision())

    assert said(await scene.carry_out()) == (
        R,
        "idempotency",
        ("idempotency key reused for a different effect",),
    )


@pytest.mark.parametrize("error", [OSError("reset"), ValueError("a bug"), KeyError("x"), TimeoutError()])
async def test_whatever_an_adapter_raises_while_sending_is_an_unknown_outcome(error: Exception) -> None:
    scene = Scene()
    scene.bank.answers.append(error)
    scene.bank.readings.append(CannotRead())

    assert (await scene.carry_out()).state is U


async def test_what_cannot_be_prepared_is_rejected_before_anything_leaves() -> None:
    scene = Scene(Bank(refuses_to_prepare=True))

    entry = await scene.carry_out()

    assert said(entry) == (R, "outcome", ("provider_refused:no such key",))
    assert (entry.sends, scene.bank.sent) == (0, [])


async def test_cancelling_passes_through_and_leaves_the_outcome_unknown() -> None:
    scene = Scene()
    is_sending = asyncio.Event()

    class Silent(Bank):
        async def execute(self, prepared: Prepared) -> ExecuteResult:
            is_sending.set()
            await asyncio.Event().wait()
            raise AssertionError

    scene.executor = Executor(scene.ledger, {"bank": Silent()}, clock=scene.clock)
    task = asyncio.create_task(scene.carry_out())
    await is_sending.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    entry = await scene.ledger.read("k1")
    assert entry is not None
    assert entry.state is U


async def test_the_outcome_is_unknown_in_the_ledger_before_the_request_leaves() -> None:
    scene = Scene()
    states: list[EffectState] = []

    class Looking(Bank):
        async def execute(self, prepared: Prepared) -> ExecuteResult:
            entry = await scene.ledger.read("k1")
            assert entry is not None
            states.append(entry.state)
            return await super().execute(prepared)

    scene.executor = Executor(scene.ledger, {"bank": Looking()}, clock=scene.clock)
    await scene.carry_out()

    assert states == [U]


async def test_what_a_predecessor_left_unknown_is_read_back_and_not_sent() -> None:
    scene = Scene()
    (prepared,) = await scene.executor.prepare([order()], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)
    await scene.ledger.begin_send(
        prepared,
        verdict=Verdict(Status.UNKNOWN, Stage.OUTCOME, (), ""),
        token=LANE,
        read_back_in_s=0,
    )
    scene.bank.transfers.append(order().command)

    entry = await scene.carry_out()

    assert (entry.state, entry.status, scene.bank.sent) == (C, EffectStatus.VERIFIED_BY_READBACK, [])


async def test_of_two_executors_one_sends() -> None:
    scene = Scene()
    (prepared,) = await scene.executor.prepare([order()], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)

    found = await asyncio.gather(*(scene.executor.carry_out(prepared, token=LANE) for _ in range(3)))

    assert scene.bank.sent == ["k1"]
    assert {each.state for each in found} <= {C, U}
    assert (await scene.reconcile(after_s=60)).state is C


@pytest.mark.parametrize("settle_s", [0.0, 30.0, 86_400.0])
async def test_a_process_held_up_before_it_sends_does_not_send(settle_s: float) -> None:
    scene = Scene(Bank(settle_s=settle_s))
    begin_send = scene.ledger.begin_send

    async def slowly(*arguments: Any, **named: Any) -> Entry | Moved:
        sent = await begin_send(*arguments, **named)
        scene.clock.passes(LATEST_START_S + 0.1)
        return sent

    scene.ledger.begin_send = slowly  # type: ignore[method-assign]

    assert (await scene.carry_out()).state is U
    assert scene.bank.sent == []


async def test_a_late_success_is_not_lost_though_the_reconciler_took_it_for_absent() -> None:
    scene = Scene(Bank(is_idempotent_by_key=False))

    class Late(Bank):
        async def execute(self, prepared: Prepared) -> ExecuteResult:
            scene.clock.passes(60)
            absent = await scene.reconcile()
            assert absent.state is A
            return await super().execute(prepared)

    bank = Late(is_idempotent_by_key=False)
    scene.executor = Executor(scene.ledger, {"bank": bank}, clock=scene.clock)
    scene.reconciler._executor = scene.executor

    entry = await scene.carry_out()

    assert (entry.state, entry.status) == (C, EffectStatus.VERIFIED_BY_READBACK)
    assert bank.sent == ["k1"]


@pytest.mark.parametrize("reading", [None, NotFound()])
async def test_an_answer_that_comes_after_a_persons_other_word_is_an_error_with_both(
    caplog: pytest.LogCaptureFixture, reading: NotFound | None
) -> None:
    scene = Scene()

    class Late(Bank):
        async def execute(self, prepared: Prepared) -> ExecuteResult:
            await scene.reconciler.settle("k1", A, actor="ann", reason="not on the statement")
            return await super().execute(prepared)

    bank = Late(readings=deque([] if reading is None else [reading]))
    scene.executor = Executor(scene.ledger, {"bank": bank}, clock=scene.clock)

    entry = await scene.carry_out()

    assert entry.state is A
    (said_,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert "effect k1 was settled as absent by a person" in said_
    assert f"says {C if reading is None else 'unknown, effect_not_verified'}" in said_


async def test_an_answer_that_bears_a_persons_word_out_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()

    class Late(Bank):
        async def execute(self, prepared: Prepared) -> ExecuteResult:
            await scene.reconciler.settle("k1", C, actor="ann", reason="on the statement")
            return await super().execute(prepared)

    scene.executor = Executor(scene.ledger, {"bank": Late()}, clock=scene.clock)

    assert (await scene.carry_out()).state is C
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_stopping_what_is_prepared_sends_nothing_and_only_that_can_be_stopped() -> None:
    scene = Scene()
    (prepared,) = await scene.executor.prepare([order()], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)
    denied = Settlement(
        state=R,
        verdict=Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "ask"),
        judged_again=JudgedAgain({"authority": None, "world": {}}, datetime(2026, 9, 1, 12, tzinfo=UTC)),
    )

    rejected = await scene.executor.stop(prepared, denied, token=LANE)
    settled = await scene.executor.carry_out(rejected, token=LANE)

    assert said(settled) == (R, "authority", ("tool_not_delegated",))
    assert scene.bank.sent == []
    assert receipt_of(settled).judged_again == denied.judged_again
    assert await scene.executor.stop(settled, denied, token=LANE) == settled


async def test_a_provider_that_is_not_named_sends_nothing_and_says_so() -> None:
    scene = Scene()
    scene.executor = Executor(scene.ledger, {}, clock=scene.clock)

    with pytest.raises(ProviderMissing, match="no provider 'bank'"):
        await scene.carry_out()


async def test_a_receipt_says_what_the_entry_says() -> None:
    scene = Scene()
    entry = await scene.carry_out(order(offset=3))

    receipt = receipt_of(entry)

    assert (receipt.effect_state, receipt.sequence, receipt.sends) == (C, 3, 1)
    assert (receipt.subject, receipt.source) == ("T-1", entry.order.source)
    assert receipt.state == entry.observed
    assert receipt_of(entry, asked=order(offset=3)).status is EffectStatus.CREATED
    again = receipt_of(entry, asked=order(offset=4))
    assert (again.status, again.source) == (EffectStatus.REPLAYED, order(offset=4).source)


async def test_a_collisions_receipt_says_nothing_of_what_stands() -> None:
    scene = Scene()
    await scene.carry_out()
    (found,) = await scene.executor.prepare([order(amount_gbp="1.00")], token=LANE, claimed=1)
    assert isinstance(found, Collided)

    receipt = receipt_of(found)

    assert (receipt.effect_state, receipt.sequence, receipt.status) == (R, 0, None)
    assert receipt.arguments["amount_gbp"] == "1.00"
    assert receipt.verdict is not None
    assert receipt.verdict.stage is Stage.IDEMPOTENCY


async def test_a_number_that_a_provider_writes_otherwise_is_the_same() -> None:
    scene = Scene()
    scene.bank.answers.append(Executed("tr_1", {"n": 1}, is_replay=False))
    scene.bank.readings.append(Found("tr_1", {"n": 1.0, "payee_id": "supplier_7", "amount_gbp": "600.00"}))

    assert (await scene.carry_out(order(n=1))).state is C
