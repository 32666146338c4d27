"""Repair: what may change, how often, and what ends it."""

from __future__ import annotations

import pytest
from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.repair import BUDGETS, Attempt, remaining
from ticketgate.codecs.records.receipt import StopReason
from ticketgate.codecs.verdict import Stage, Status, Verdict

from ...support.funnel import arguments, attempt, authority, bare_call, call, run, said


def after(*texts: str) -> tuple[Attempt, ...]:
    """The committed attempts that these calls make, one after another."""
    committed: list[Attempt] = []
    for text in texts:
        committed.append(attempt(text, run(text, committed=committed)))
    return tuple(committed)


def test_a_first_drift_says_what_may_change_and_to_what() -> None:
    repair = run(call(amount_gbp="660")).repair

    assert repair is not None
    assert (repair.stage, repair.source_of_truth, repair.permitted) == (
        "semantics",
        "request",
        ("amount_gbp",),
    )
    assert repair.anchors == {"amount_gbp": "600.00"}
    assert (repair.attempt, repair.maximum, repair.remaining, repair.stop_reason) == (1, 1, 0, None)


def test_a_mended_call_is_carried_out_and_its_receipt_shows_the_change() -> None:
    provider = MemoryProvider()

    outcome = run(call(), committed=after(call(amount_gbp="660")), provider=provider)

    assert said(outcome) == ("accept", "postcondition", ())
    assert outcome.repair is not None
    assert outcome.repair.stop_reason is StopReason.REPAIRED
    assert (outcome.repair.before, outcome.repair.after) == ({"amount_gbp": "660"}, {"amount_gbp": "600.00"})
    assert provider.committed == 1


def test_a_change_that_was_not_permitted_ends_it_even_if_every_gate_is_content() -> None:
    provider = MemoryProvider()
    first = call(amount_gbp="660", account_id="acct_demo")

    outcome = run(call(idempotency_key="exactly-once-demo"), committed=after(first), provider=provider)

    assert said(outcome) == ("review", "semantics", ("unpermitted_change", "idempotency_key"))
    assert provider.sent == 0


def test_a_change_of_tool_is_never_permitted_by_a_schemas_repair() -> None:
    outcome = run(call("quote_transfer"), committed=after(call(amount_gbp=600)))

    assert said(outcome) == ("review", "schema", ("unpermitted_change", "tool"))


def test_a_repair_is_held_to_the_latest_attempt_and_not_to_the_first() -> None:
    committed = after(call(payee_id=None, amount_gbp="660"), call(amount_gbp="660"))
    assert [each.permitted for each in committed] == [("payee_id",), ("amount_gbp",)]

    assert said(run(call(), committed=committed)) == ("accept", "postcondition", ())
    # What the first repair permitted was for the first repair.
    assert said(run(call(payee_id="supplier_8"), committed=committed)) == (
        "review",
        "semantics",
        ("unpermitted_change", "payee_id"),
    )


def test_the_same_call_again_is_an_oscillation() -> None:
    outcome = run(call(amount_gbp="660"), committed=after(call(amount_gbp="660")))

    assert said(outcome) == ("review", "semantics", ("oscillation", "same_call_as_attempt:1"))


def test_there_and_back_is_an_oscillation() -> None:
    outcome = run(call(amount_gbp=600), committed=after(call(amount_gbp=600), call(amount_gbp="660")))

    assert said(outcome) == ("review", "semantics", ("oscillation", "same_call_as_attempt:1"))


def test_a_second_drift_of_the_same_field_finds_the_budget_spent() -> None:
    outcome = run(call(amount_gbp="670"), committed=after(call(amount_gbp="660")))

    assert said(outcome) == (
        "review",
        "semantics",
        ("budget_exhausted", "amount_gbp:proposal=670.00:request=600.00"),
    )


def test_each_stage_has_a_budget_of_its_own() -> None:
    committed = after("{", '{"call_id": "c"}', call("unknown"), call(amount_gbp=1), call(amount_gbp="1"))

    # The one of tool_selection is the requester's; tests/agents/funnel/test_clarifying.py has it.
    of_the_proposer = [stage for stage in BUDGETS if stage is not Stage.TOOL_SELECTION]
    assert [each.verdict.stage for each in committed] == of_the_proposer
    assert said(run(call(), committed=committed)) == ("accept", "postcondition", ())


def test_unreadable_text_does_not_wash_a_bound_away() -> None:
    committed = after(call(amount_gbp="660"), "{")

    outcome = run(call(idempotency_key="exactly-once-demo"), committed=committed)

    assert said(outcome) == ("review", "parse", ("unpermitted_change", "idempotency_key"))


def test_an_extra_field_may_go_however_long_its_name() -> None:
    committed = after(call(**{"x" * 300: "y"}))

    assert said(run(call(), committed=committed)) == ("accept", "postcondition", ())


@pytest.mark.parametrize("status", [Status.DENY, Status.REJECT, Status.UNKNOWN, Status.ACCEPT, Status.REVIEW])
def test_after_anything_but_a_repair_nothing_is_tried_again(status: Status) -> None:
    provider = MemoryProvider()
    before = Attempt(1, call(amount_gbp="660"), Verdict(status, Stage.OUTCOME, (), ""))

    outcome = run(call(), committed=(before,), provider=provider)

    assert said(outcome)[2] == ("not_repairable", f"attempted_after:{status}")
    assert provider.sent == 0


def test_a_denial_of_a_mended_call_stays_a_denial() -> None:
    outcome = run(call(), may=authority(limit="1.00"), committed=after(call(amount_gbp="660")))

    assert said(outcome)[:2] == ("deny", "authority")
    assert outcome.repair is not None
    assert outcome.repair.stop_reason is StopReason.NOT_REPAIRABLE


def test_stages_without_a_budget_have_none() -> None:
    assert {stage for stage in Stage if remaining(stage, ())} == set(BUDGETS)


def test_an_argument_called_tool_is_not_taken_for_the_tool() -> None:
    given = arguments(tool="x")

    outcome = run(call(), committed=after(bare_call(given)))

    assert said(outcome) == ("accept", "postcondition", ())


def test_an_extra_fields_name_opens_no_other_field() -> None:
    committed = after(call(**{"payee_id:x": "y"}))

    outcome = run(call(payee_id="supplier_8"), committed=committed)

    assert said(outcome) == ("review", "schema", ("unpermitted_change", "payee_id"))
