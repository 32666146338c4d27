"""Which observed states stand: equal content in a state that is not declared done is never a success."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.port import Found, NotFound
from ticketgate.agents.effects.states import States
from ticketgate.codecs.records.receipt import EffectState, EffectStatus

from ...support.effects import ARGUMENTS, Scene, said

U, C, R = EffectState.UNKNOWN, EffectState.COMMITTED, EffectState.REJECTED
STATES = States(done=("booked",), pending=("processing",), undone=("cancelled",), pending_s=600)


def scene(states: States | None = STATES) -> Scene:
    made = Scene()
    declared = {} if states is None else {"pay": states}
    made.executor = Executor(made.ledger, {"bank": made.bank}, states=declared, clock=made.clock)
    made.reconciler._executor = made.executor
    return made


def observed(status: Any, provider_id: str = "tr_0") -> Found:
    return Found(provider_id, {**ARGUMENTS, "status": status})


async def test_a_state_that_is_done_is_a_success() -> None:
    assert said(await scene().carry_out()) == (C, "postcondition", ())


@pytest.mark.parametrize("answer", [None, "lost_after"])
async def test_what_was_undone_is_no_success(answer: str | None) -> None:
    made = scene()
    made.bank.answers.extend([answer] if answer else [])
    made.bank.readings.append(observed("cancelled"))

    entry = await made.carry_out()

    assert said(entry) == (R, "readback", ("undone:status=cancelled",))
    assert entry.observed == {**ARGUMENTS, "status": "cancelled"}


@pytest.mark.parametrize("status", ["archived", None, 7, "Booked"])
async def test_a_state_that_nobody_declared_stays_open(status: Any) -> None:
    made = scene()
    made.bank.readings.append(observed(status))

    entry = await made.carry_out()

    told = "none" if status is None else status
    assert said(entry) == (U, "postcondition", (f"state_not_declared:status={told}",))


async def test_pending_is_read_again_until_it_is_done() -> None:
    made = scene()
    made.bank.readings.extend([observed("processing"), observed("processing")])

    assert said(await made.carry_out()) == (U, "postcondition", ("pending:status=processing",))
    before = await made.ledger.read("k1")
    assert said(await made.reconcile(after_s=60)) == (U, "postcondition", ("pending:status=processing",))
    after = await made.ledger.read("k1")
    # The same news is told once.
    assert before is not None
    assert after is not None
    assert after.sequence == before.sequence
    entry = await made.reconcile(after_s=120)
    assert said(entry) == (C, "readback", ("verified_late",))
    assert entry.status is EffectStatus.VERIFIED_BY_READBACK
    assert made.bank.sent == ["k1"]


async def test_pending_for_longer_than_its_time_is_unknown_and_still_read() -> None:
    made = scene()
    made.bank.readings.extend([observed("processing")] * 2)
    await made.carry_out()

    late = await made.reconcile(after_s=601)
    assert said(late) == (U, "postcondition", ("still_pending:status=processing:after=600s",))
    made.bank.readings.append(observed("cancelled"))
    assert said(await made.reconcile_often(1)) == (R, "readback", ("undone:status=cancelled",))
    assert made.bank.sent == ["k1"]


async def test_what_was_pending_and_vanished_is_not_sent_again() -> None:
    made = scene()
    made.bank.readings.extend([observed("processing"), NotFound(), NotFound(), NotFound()])
    await made.carry_out()

    await made.reconcile_often(3)

    assert made.bank.sent == ["k1"]


async def test_another_content_is_told_before_its_state() -> None:
    made = scene()
    made.bank.answers.append("lost_after")
    made.bank.readings.append(Found("tr_9", {**ARGUMENTS, "amount_gbp": "60.00", "status": "processing"}))

    assert said(await made.carry_out()) == (R, "readback", ("amount_gbp:wanted=600.00:observed=60.00",))


async def test_a_tool_without_states_stands_as_it_reads() -> None:
    made = scene(None)
    made.bank.readings.append(observed("cancelled"))

    assert (await made.carry_out()).state is C


@given(st.sampled_from([*STATES.done, *STATES.pending, *STATES.undone]) | st.text(), st.booleans())
def test_only_what_is_declared_done_is_done(status: str, is_field: bool) -> None:
    seen = {"status": status} if is_field else {"state": status}

    assert (STATES.standing(seen) == "done") is (is_field and status in STATES.done)


def test_states_without_done_are_none() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(States).validate_python({"done": []})
