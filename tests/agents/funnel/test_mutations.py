"""The mutations of the seed's release section, generated: none of them ever moves money."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st
from ticketgate.agents.effects.adapters.memory import ExecuteFault, MemoryProvider, ReadBackFault
from ticketgate.agents.funnel.evidence import Authority
from ticketgate.codecs.records.proposal import Request

from ...support.funnel import (
    FLOOR,
    SUPPORT,
    VALUES,
    WORLD,
    authority,
    bare_call,
    call,
    confirmation,
    request,
    run,
    said,
)

FIELDS = sorted({**VALUES, **FLOOR})
NOT_TEXT = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.lists(st.booleans(), max_size=2)
KNOWN = {*FIELDS, "idempotency_key"}
NAMES = st.text(min_size=1, max_size=40).filter(lambda name: name.isprintable() and name not in KNOWN)


def refused(text: str) -> tuple[str, str, tuple[str, ...]]:
    """What is said of a call that must not have an effect, tried on a fresh provider."""
    provider = MemoryProvider()
    outcome = run(text, provider=provider)
    assert provider.sent == 0
    assert outcome.effect is None
    return said(outcome)


@given(st.sets(st.sampled_from(FIELDS), min_size=1))
def test_missing_fields_are_all_named_sorted(missing: set[str]) -> None:
    given = {name: value for name, value in {**VALUES, **FLOOR}.items() if name not in missing}

    assert refused(bare_call(given)) == (
        "repair",
        "schema",
        tuple(f"missing:{name}" for name in sorted(missing)),
    )


@given(st.sets(NAMES, min_size=1, max_size=5))
def test_extra_fields_are_all_named_sorted(extra: set[str]) -> None:
    given = {**VALUES, **FLOOR, **dict.fromkeys(extra, "x")}

    assert refused(bare_call(given)) == (
        "repair",
        "schema",
        tuple(f"extra:{name}" for name in sorted(extra)),
    )


@given(st.dictionaries(st.sampled_from(FIELDS), NOT_TEXT, min_size=1))
def test_retyped_fields_are_all_named_sorted(retyped: dict[str, object]) -> None:
    given = {**VALUES, **FLOOR, **retyped}

    wrong = tuple(f"wrong_type:{name}" for name in sorted(retyped))
    assert refused(bare_call(given)) == ("repair", "schema", wrong)


@given(st.sets(st.sampled_from(FIELDS)), st.sets(NAMES, max_size=3), st.data())
def test_all_three_come_in_their_order(missing: set[str], extra: set[str], data: st.DataObject) -> None:
    rest = [name for name in FIELDS if name not in missing]
    retyped = data.draw(st.sets(st.sampled_from(rest))) if rest else set()
    if not (missing or extra or retyped):
        return
    given = {**VALUES, **FLOOR, **dict.fromkeys(extra, "x"), **dict.fromkeys(retyped, 1)}

    reasons = refused(bare_call({name: value for name, value in given.items() if name not in missing}))[2]

    assert reasons == (
        *(f"missing:{name}" for name in sorted(missing)),
        *(f"extra:{name}" for name in sorted(extra)),
        *(f"wrong_type:{name}" for name in sorted(retyped)),
    )


@given(st.sampled_from(["amount_gbp", *FLOOR]), st.decimals("0.01", "999999999.99", places=2))
def test_a_changed_decimal_is_named_with_both_values(name: str, amount: Decimal) -> None:
    asked = Decimal({**VALUES, **FLOOR}[name])
    if amount == asked:
        return

    reasons = refused(call(**{name: str(amount)}))

    assert reasons == ("repair", "semantics", (f"{name}:proposal={amount:.2f}:request={asked:.2f}",))


@given(st.sampled_from([Decimal("0.01"), Decimal("0.1"), Decimal(10), Decimal(100), Decimal(1000)]))
def test_pence_for_pounds_is_another_amount(factor: Decimal) -> None:
    changed = Decimal(VALUES["amount_gbp"]) * factor

    assert refused(call(amount_gbp=f"{changed:.2f}"))[:2] == ("repair", "semantics")


@given(st.sampled_from(["EUR", "USD"]))
def test_another_currency_is_another_amount(currency: str) -> None:
    refund = {"order_id": "order_5", "amount": "19.90", "currency": "GBP"}
    asked = Request(operation="refund", actor_id="user_demo", roles=("agent",), phase="open", values=refund)
    provider = MemoryProvider()

    outcome = run(
        bare_call({**refund, "currency": currency}, "refund_order"),
        asked=asked,
        catalogue=SUPPORT,
        provider=provider,
    )

    assert said(outcome) == ("repair", "semantics", (f"currency:proposal={currency}:request=GBP",))
    assert provider.sent == 0


@given(st.sampled_from(["account_id", "payee_id"]), st.text(min_size=1, max_size=256))
def test_another_identifier_is_another_however_alike(name: str, identifier: str) -> None:
    if identifier == VALUES[name]:
        return

    status, stage, reasons = refused(call(**{name: identifier}))

    assert (status, stage) == ("repair", "semantics")
    assert len(reasons) == 1
    assert reasons[0].startswith(f"{name}:proposal=")


@given(st.dates(date(1, 1, 1), date(9999, 12, 31)))
def test_another_day_is_another(day: date) -> None:
    if day.isoformat() == VALUES["payment_date"]:
        day += timedelta(days=1)

    assert refused(call(payment_date=day.isoformat()))[:2] == ("repair", "semantics")


# Of the characters that decimals of some reader are written in, so that many are nearly amounts.
NEARLY_MONEY = st.text("0123456789.,+-eE_ Nan\u0660\uff10", max_size=8) | st.text(max_size=12)


@given(NEARLY_MONEY)
@example("601")
@example("601.5")
@example("6e2")
@example("600.000")
@example(" 600")
@example("\uff16\uff10\uff10")
def test_what_is_taken_for_money_is_a_plain_decimal(text: str) -> None:
    status, stage, _ = (
        refused(call(amount_gbp=text)) if text not in ("600", "600.0", "600.00") else ("", "", ())
    )

    if (status, stage) == ("repair", "semantics"):
        whole, _, cents = text.partition(".")
        assert text.isascii()
        assert whole.isdigit()
        assert len(cents) <= 2
    elif re.fullmatch(r"[1-9][0-9]{0,7}(\.[0-9]{1,2})?", text, re.ASCII):
        assert Decimal(text) == 600


@given(st.dictionaries(st.sampled_from(sorted(VALUES)), st.text(min_size=1, max_size=8)))
def test_a_schedule_for_a_quote_never_schedules(changed: dict[str, str]) -> None:
    provider = MemoryProvider()

    outcome = run(call(**changed), asked=request("quote"), provider=provider)

    assert said(outcome)[1] in ("tool_selection", "schema")
    assert provider.sent == 0


@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    assert refused(text)[0] in ("repair", "review", "reject", "deny")


@given(st.decimals("0.00", "599.99", places=2))
def test_a_limit_below_the_amount_denies_and_names_itself(limit: Decimal) -> None:
    provider = MemoryProvider()

    outcome = run(call(), may=authority(limit=f"{limit:.2f}"), provider=provider)

    assert said(outcome) == ("deny", "authority", (f"amount_exceeds_limit:{limit:.2f}",))
    assert provider.sent == 0


# What a person may have taken back meanwhile: the tool, enough of the limit, or the yes to any one of the values.
REVOKED = st.one_of(
    st.builds(lambda tools: authority(tools=frozenset(tools)), st.sets(st.sampled_from(["quote_transfer"]))),
    st.builds(lambda limit: authority(limit=f"{limit:.2f}"), st.decimals("0.00", "599.99", places=2)),
    st.just(authority(confirmations=())),
    st.builds(
        lambda name: authority(confirmations=(confirmation(**{name: "another"}),)), st.sampled_from(FIELDS)
    ),
)


@given(REVOKED)
def test_whatever_was_revoked_before_the_effect_stops_it(later: Authority) -> None:
    provider = MemoryProvider()

    outcome = run(call(), later=later, provider=provider)

    assert said(outcome)[:2] == ("deny", "authority")
    assert provider.sent == 0


@given(st.integers(1, 1_000_000), st.integers(1, 1_000_000), st.booleans())
def test_any_newer_request_stops_the_older_before_deciding_and_before_acting(
    version: int, more: int, is_known_at_once: bool
) -> None:
    provider = MemoryProvider()
    newer = replace(WORLD, request_version=version + more)

    outcome = run(
        call(),
        asked=request(version=version),
        world=newer if is_known_at_once else WORLD,
        later_world=newer,
        provider=provider,
    )

    reason = f"request_superseded:version={version}:newest={version + more}"
    assert said(outcome) == ("reject", "world_state", (reason,))
    assert provider.sent == 0


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["timeout_before_commit", "timeout_after_commit"]), max_size=2),
            st.lists(st.sampled_from(["unreadable", "unsettled"]), max_size=3),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_time_outs_before_and_after_the_commit_make_one_transfer_at_most(
    proposed: list[tuple[list[ExecuteFault], list[ReadBackFault]]], is_idempotent_by_key: bool
) -> None:
    provider = MemoryProvider(is_idempotent_by_key=is_idempotent_by_key)
    # Each run has a provider of its own: to a provider that knows no keys, proposing again is another order.
    for execute, read_back in proposed if is_idempotent_by_key else proposed[:1]:
        sent = provider.sent
        provider.fail_next(execute=execute, read_back=read_back)

        outcome = run(call(), provider=provider)

        assert provider.committed <= 1
        assert provider.sent - sent <= (2 if is_idempotent_by_key else 1)
        assert outcome.verdict.status in ("accept", "unknown")
        # What is accepted was read back; what was not is told as unknown, whether it stands or not.
        assert (outcome.effect is not None) == (outcome.verdict.status == "accept")
        if outcome.effect is not None:
            assert (provider.committed, outcome.effect.provider_id) == (1, "tr_0001")
