"""The gates by example: which gate speaks, with which reasons."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.catalogue import Offered
from ticketgate.agents.funnel.evidence import CLOCK_SKEW_S, Authority, World

from ...support.funnel import (
    AT,
    FLOOR,
    KEY,
    PAYMENTS,
    SUPPORT,
    VALUES,
    arguments,
    authority,
    bare_call,
    call,
    confirmation,
    request,
    run,
    said,
    unkeyed,
    with_conditions,
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"call_id": "c", ', "invalid_json_at_17"),
        ("", "invalid_json_at_0"),
        ("[]", "top_level_must_be_object"),
        ('{"a": 1, "a": 2}', 'duplicate_key:duplicate key "a" at $'),
    ],
)
def test_text_that_is_no_object_is_repaired_at_parse(text: str, reason: str) -> None:
    assert said(run(text)) == ("repair", "parse", (reason,))


def test_deep_nesting_and_lone_surrogates_are_verdicts_and_no_exceptions() -> None:
    for text in ("[" * 100_000, '{"a": "\ud800"}', '{"a": NaN}', "9" * 5000, '{"a": 1e999}'):
        assert said(run(text))[:2] == ("repair", "parse")


def test_an_envelopes_faults_are_all_named() -> None:
    outcome = run('{"tool": "", "arguments": [], "notes": "x", "also": 1}')

    assert said(outcome) == (
        "repair",
        "envelope",
        (
            "invalid_call_envelope",
            "missing:call_id",
            "extra:also",
            "extra:notes",
            "wrong_type:arguments",
            "wrong_type:tool",
        ),
    )


def test_a_tool_outside_the_catalogue_is_repaired_there() -> None:
    assert said(run(call("delete_customer"))) == ("repair", "tool_catalogue", ("unknown_tool",))


def test_shape_names_missing_then_extra_then_wrong_type() -> None:
    given = arguments(payee_id=None, account_id=None, amount_gbp=600, zeta="z", alpha="a", payment_date=True)

    assert said(run(bare_call(given))) == (
        "repair",
        "schema",
        (
            "missing:account_id",
            "missing:payee_id",
            "extra:alpha",
            "extra:zeta",
            "wrong_type:amount_gbp",
            "wrong_type:payment_date",
        ),
    )


@pytest.mark.parametrize(
    "amount",
    [
        "NaN",
        "Infinity",
        "6e2",
        " 600.00",
        "600.00 ",
        "\uff16\uff10\uff10",
        "600.001",
        "1_000",
        "+600",
        "0600",
        "600.",
        ".5",
        "",
    ],
)
def test_money_that_is_no_plain_decimal_is_refused(amount: str) -> None:
    status, stage, reasons = said(run(call(amount_gbp=amount)))

    assert (status, stage) == ("repair", "schema")
    assert reasons[0].startswith("invalid:amount_gbp:not a decimal amount with at most two places")


@pytest.mark.parametrize("amount", ["600", "600.0", "600.00"])
def test_spellings_of_one_amount_mean_the_same(amount: str) -> None:
    provider = MemoryProvider()
    run(call(), provider=provider, case_id="first")

    outcome = run(call(amount_gbp=amount), provider=provider)

    assert said(outcome) == ("accept", "postcondition", ())
    assert outcome.effect is not None
    assert outcome.effect.status == "replayed"
    assert outcome.effect.arguments["amount_gbp"] == "600.00"


@pytest.mark.parametrize(
    "day", ["2026-02-30", "20260904", "2026-W36-5", "04.09.2026", "2026-9-4", "tomorrow"]
)
def test_a_date_is_a_date(day: str) -> None:
    assert said(run(call(payment_date=day)))[:2] == ("repair", "schema")


def test_zero_and_a_negative_floor_are_out_of_range_and_both_named() -> None:
    reasons = said(run(call(amount_gbp="-0.00", minimum_remaining_balance_gbp="-1")))[2]

    assert reasons == (
        "invalid:amount_gbp:must be above 0, not 0.00",
        "invalid:minimum_remaining_balance_gbp:must be at least 0, not -1.00",
    )


def test_every_changed_value_is_named_with_both() -> None:
    outcome = run(
        call(
            amount_gbp="660",
            payee_id="Supplier_7",
            payment_date="2026-09-05",
            minimum_remaining_balance_gbp="1",
        )
    )

    assert said(outcome) == (
        "repair",
        "semantics",
        (
            "payee_id:proposal=Supplier_7:request=supplier_7",
            "amount_gbp:proposal=660.00:request=600.00",
            "payment_date:proposal=2026-09-05:request=2026-09-04",
            "minimum_remaining_balance_gbp:proposal=1.00:request=1000.00",
        ),
    )


def test_a_condition_that_the_tool_cannot_carry_is_not_dropped_unseen() -> None:
    asked = with_conditions(request(), **FLOOR, partner_agrees="yes")

    assert said(run(call(), asked=asked)) == (
        "review",
        "semantics",
        ("partner_agrees:proposal=none:request=yes",),
    )


def test_a_value_that_nobody_asked_for_goes_to_a_person() -> None:
    asked = replace(request(), conditions={})

    assert said(run(call(), asked=asked)) == (
        "review",
        "semantics",
        ("minimum_remaining_balance_gbp:proposal=1000.00:request=none",),
    )


def test_a_key_that_the_model_chose_is_no_key() -> None:
    provider = MemoryProvider()

    outcome = run(call(idempotency_key="chosen-by-model"), provider=provider)

    assert said(outcome) == (
        "repair",
        "semantics",
        ("idempotency_key:proposal=chosen-by-model:request=exactly-once-demo",),
    )
    assert provider.sent == 0


def test_without_a_bound_key_two_attempts_at_a_case_share_one() -> None:
    provider, asked = MemoryProvider(), replace(request(), control={})

    first, second = (run(call(), asked=asked, provider=provider, catalogue=unkeyed()) for _ in range(2))

    assert first.effect is not None
    assert second.effect is not None
    assert first.effect.idempotency_key == second.effect.idempotency_key
    assert provider.committed == 1


def test_a_floor_that_would_be_broken_is_rejected_with_both_amounts() -> None:
    world = World(facts={"current_balance_gbp": "1599.99"})

    assert said(run(call(), world=world)) == (
        "reject",
        "world_state",
        ("remaining_balance:999.99", "required_floor:1000.00"),
    )


@pytest.mark.parametrize("facts", [{}, {"current_balance_gbp": 3000}, {"current_balance_gbp": "NaN"}])
def test_a_world_that_does_not_say_stops_the_case(facts: dict[str, str | int]) -> None:
    status, stage, reasons = said(run(call(), world=World(facts=facts)))

    assert (status, stage) == ("review", "world_state")
    assert reasons[0].startswith("fact_unknown:current_balance_gbp")


def test_authority_collects_what_lacks() -> None:
    may = authority(limit="500.00", confirmations=())

    assert said(run(call(), may=may)) == (
        "deny",
        "authority",
        ("amount_exceeds_limit:500.00", "explicit_confirmation_missing"),
    )


@pytest.mark.parametrize(
    ("may", "reason"),
    [
        (Authority(actor_id="user_demo"), "tool_not_delegated"),
        (authority(actor_id="somebody_else"), "tool_not_delegated"),
        (authority(limits={}), "limit_unknown:max_single_payment_gbp"),
        (authority(limit="1e9"), "limit_unknown:max_single_payment_gbp"),
    ],
)
def test_what_is_not_delegated_is_denied(may: Authority, reason: str) -> None:
    assert said(run(call(), may=may)) == ("deny", "authority", (reason,))


def test_a_negative_amount_passes_no_limit() -> None:
    tool = PAYMENTS.tools["schedule_transfer"]
    amount = replace(tool.fields["amount_gbp"], above=None)
    catalogue = replace(
        PAYMENTS,
        tools={"schedule_transfer": replace(tool, fields={**tool.fields, "amount_gbp": amount})},
    )
    below = {"amount_gbp": "-5000.00"}
    may = authority(confirmations=(confirmation(**below),))

    outcome = run(call(**below), asked=request(**below), may=may, catalogue=catalogue)

    assert said(outcome) == ("deny", "authority", ("amount_below_zero:amount_gbp",))


def test_a_changed_bound_value_voids_a_confirmation() -> None:
    may = authority(confirmations=(confirmation(amount_gbp="60.00"),))

    assert said(run(call(), may=may))[2] == (
        "explicit_confirmation_missing",
        "confirmation_void:ev_1:amount_gbp:confirmed=60.00:request=600.00",
    )


def test_a_confirmation_that_binds_the_key_holds_for_one_effect() -> None:
    of_another = run(call(), asked=request(control={"idempotency_key": "another-1"}))

    assert said(run(call())) == ("accept", "postcondition", ())
    assert said(of_another)[2] == (
        "explicit_confirmation_missing",
        f"confirmation_void:ev_1:idempotency_key:confirmed={KEY}:request=another-1",
    )
    may = authority(confirmations=(confirmation(idempotency_key=None),))
    unbound = run(call(), asked=request(control={}), may=may)
    assert said(unbound)[2] == (
        "explicit_confirmation_missing",
        "confirmation_void:ev_1:idempotency_key:confirmed=none:request=none",
    )


def test_a_confirmed_number_is_no_amount() -> None:
    # It may be of pounds or of pence, and Python would call 600 and 600.00 equal.
    may = authority(confirmations=(confirmation(amount_gbp=600),))

    assert said(run(call(), may=may)) == (
        "deny",
        "authority",
        (
            "explicit_confirmation_missing",
            "confirmation_void:ev_1:amount_gbp:confirmed=600:request=600.00",
        ),
    )


@pytest.mark.parametrize("key", [12345, True, "", "k" * 257])
def test_a_bound_key_that_is_none_goes_to_a_person_and_no_other_takes_its_place(key: str | int) -> None:
    values = {"order_id": "o", "amount": "5.00", "currency": "GBP"}
    asked = replace(
        request("refund"),
        values=values,
        conditions={},
        control={"idempotency_key": key},
        phase="open",
        roles=("agent",),
    )
    refund = SUPPORT.tools["refund_order"]
    fields = {name: spec for name, spec in refund.fields.items() if name != "idempotency_key"}
    without = replace(unkeyed(SUPPORT, "refund_order").tools["refund_order"], fields=fields)
    catalogue = replace(SUPPORT, tools={"refund_order": without})

    outcome = run(bare_call(values, "refund_order"), asked=asked, catalogue=catalogue)

    assert said(outcome)[:2] == ("review", "semantics")
    assert said(outcome)[2][0].startswith("idempotency_key:request is unreadable:")


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        (datetime(2026, 8, 30, tzinfo=UTC), "confirmation_expired:ev_1"),
        (AT - timedelta(seconds=86_401), "confirmation_expired:ev_1"),
        (AT + timedelta(seconds=CLOCK_SKEW_S + 0.001), "confirmation_from_the_future:ev_1"),
    ],
)
def test_a_confirmation_holds_for_its_time(moment: datetime, reason: str) -> None:
    may = authority(confirmations=(replace(confirmation(), confirmed_at=moment),))

    assert said(run(call(), may=may))[2] == ("explicit_confirmation_missing", reason)


@pytest.mark.parametrize("ahead_s", [1.0, CLOCK_SKEW_S])
def test_a_confirmation_by_a_clock_that_is_a_little_ahead_holds(ahead_s: float) -> None:
    may = authority(confirmations=(replace(confirmation(), confirmed_at=AT + timedelta(seconds=ahead_s)),))

    assert run(call(), may=may).verdict.status == "accept"


@pytest.mark.parametrize("changed", [{"actor_id": "somebody_else"}, {"operation": "quote"}])
def test_another_actors_confirmation_or_one_of_another_operation_is_none(changed: dict[str, str]) -> None:
    may = authority(confirmations=(replace(confirmation(), **changed),))

    # Not even named as void: it is of something else.
    assert said(run(call(), may=may)) == ("deny", "authority", ("explicit_confirmation_missing",))


@pytest.mark.parametrize("reason", ["missing_information", "ambiguous_request"])
def test_an_abstention_that_asks_for_something_goes_to_a_person_whether_a_tool_serves_or_not(
    reason: str,
) -> None:
    text = f'{{"call_id": "c", "abstain": "{reason}"}}'

    unserved, served = run(text, asked=request("close_account")), run(text)

    assert said(unserved) == ("review", "abstention", (f"abstained:{reason}",))
    assert said(served)[2] == (f"abstained:{reason}", "admissible:schedule_transfer")


def test_an_abstention_is_right_where_no_tool_serves() -> None:
    text = '{"call_id": "c", "abstain": "unsupported_operation"}'

    right, wrong = run(text, asked=request("close_account")), run(text)

    assert said(right) == ("accept", "abstention", ("abstained:unsupported_operation",))
    assert said(wrong) == (
        "review",
        "abstention",
        ("abstained:unsupported_operation", "admissible:schedule_transfer"),
    )
    assert right.effect is wrong.effect is None


def test_an_abstention_for_no_known_reason_is_an_envelopes_fault() -> None:
    assert said(run('{"call_id": "c", "abstain": "tired"}'))[:2] == ("repair", "envelope")


def test_a_tool_is_offered_by_role_and_phase() -> None:
    refund = bare_call({"order_id": "o", "amount": "5", "currency": "GBP"}, "refund_order")
    values = {"order_id": "o", "amount": "5.00", "currency": "GBP"}
    asked = replace(request("refund"), values=values, conditions={}, control={}, phase="open")

    hidden = run(refund, asked=asked, catalogue=SUPPORT)
    shown = run(refund, asked=replace(asked, roles=("agent",)), catalogue=SUPPORT)

    assert said(hidden)[:2] == ("repair", "tool_catalogue")
    assert said(shown)[:2] == ("review", "world_state")
    assert hidden.decision.catalogue.hash != shown.decision.catalogue.hash


@pytest.mark.parametrize(
    ("changed", "facts", "is_offered"),
    [
        ({}, {"account": "open"}, True),
        ({"roles": ("clerk", "agent")}, {"account": "open"}, True),
        ({"roles": ("clerk",)}, {"account": "open"}, False),
        ({"roles": ()}, {"account": "open"}, False),
        ({"purpose": "marketing"}, {"account": "open"}, False),
        ({"purpose": ""}, {"account": "open"}, False),
        ({"phase": "closed"}, {"account": "open"}, False),
        ({}, {"account": "frozen"}, False),
        ({}, {}, False),
    ],
)
def test_a_tool_is_offered_by_identity_purpose_phase_and_state_all_of_them(
    changed: dict[str, Any], facts: dict[str, str], is_offered: bool
) -> None:
    offered = Offered(
        roles=("agent",), purposes=("servicing",), phases=("open",), facts={"account": ("open",)}
    )
    given: dict[str, Any] = {"roles": ("agent",), "purpose": "servicing", "phase": "open", **changed}

    assert offered.admits(request(**given), facts) is is_offered
    assert Offered().admits(request(**given), facts)


def test_what_a_model_interprets_is_carried_out_as_it_reads_it() -> None:
    asked = replace(request("assign"), values={"case_id": "case_17"}, conditions={}, control={}, phase="open")
    may = authority(tools=frozenset({"assign_case"}))
    world = World(facts={"case_status": "open"})
    text = bare_call({"case_id": "case_17", "queue": "technical"}, "assign_case")

    outcome = run(text, asked=asked, may=may, world=world, catalogue=SUPPORT)

    assert said(outcome) == ("accept", "postcondition", ())
    assert outcome.effect is not None
    assert outcome.effect.arguments == {"case_id": "case_17", "queue": "technical"}


def test_a_decision_receipt_names_what_it_rests_on() -> None:
    may, world = authority(version="a-7"), World(facts={"current_balance_gbp": "3000.00"}, version="w-9")

    receipt = run(call(), may=may, world=world).decision.to_json()

    assert receipt["evidence"] == {"authority": "a-7", "world": "w-9"}
    assert receipt["tool"] == "schedule_transfer"
    assert receipt["arguments"] == {**VALUES, **FLOOR}
    assert "effect_created" not in receipt


def test_a_name_cannot_forge_a_line_of_a_log() -> None:
    reasons = said(run(call(**{"x\nACCEPTED": "y"})))[2]

    assert reasons == ('extra:"x\\nACCEPTED"',)
