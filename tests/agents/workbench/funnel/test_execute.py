"""Execution on the provider in memory: what each fault ends in, and that nothing happens twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.effects.adapters.memory import ExecuteFault, MemoryProvider, ReadBackFault
from ticketgate.agents.effects.port import Command, Prepared
from ticketgate.agents.funnel.catalogue import Catalogue, Offered
from ticketgate.agents.funnel.evidence import World
from ticketgate.agents.workbench.funnel.execute import Execution, Run

from ....support.funnel import PAYMENTS, authority, call, confirmation, request, run, said

COMMAND = Command("schedule_transfer", {"amount_gbp": "600.00"}, "key-00001")


def provider(
    *execute: ExecuteFault, read_back: tuple[ReadBackFault, ...] = (), is_idempotent_by_key: bool = True
) -> MemoryProvider:
    made = MemoryProvider(is_idempotent_by_key=is_idempotent_by_key)
    made.fail_next(execute=execute, read_back=read_back)
    return made


def test_a_time_out_after_the_commit_is_found_and_not_sent_again() -> None:
    port = provider("timeout_after_commit")

    outcome = run(call(), provider=port)

    assert said(outcome) == ("accept", "readback", ("transport_timed_out_after_commit",))
    assert outcome.effect is not None
    assert outcome.effect.status == "verified_by_readback"
    assert (port.sent, port.committed) == (1, 1)


def test_a_time_out_before_the_commit_is_sent_again_once_under_its_key() -> None:
    port = provider("timeout_before_commit")

    outcome = run(call(), provider=port)

    assert said(outcome) == ("accept", "postcondition", ("transport_timed_out_before_commit",))
    assert outcome.effect is not None
    assert outcome.effect.status == "created"
    assert (port.sent, port.committed) == (2, 1)


def test_a_second_time_out_before_the_commit_is_held() -> None:
    port = provider("timeout_before_commit", "timeout_before_commit")

    assert said(run(call(), provider=port)) == (
        "unknown",
        "outcome",
        ("transport_timed_out_before_commit", "nothing_stands_after_settle_time"),
    )
    assert (port.sent, port.committed) == (2, 0)


@pytest.mark.parametrize("fault", ["unreadable", "unsettled"])
def test_without_a_final_read_back_nothing_is_sent_again(fault: ReadBackFault) -> None:
    port = provider("timeout_before_commit", read_back=(fault,))

    assert said(run(call(), provider=port)) == ("unknown", "outcome", ("timeout_and_no_readback",))
    assert port.sent == 1


def test_a_provider_that_is_not_idempotent_is_never_sent_to_twice() -> None:
    port = provider("timeout_before_commit", is_idempotent_by_key=False)

    assert said(run(call(), provider=port))[:2] == ("unknown", "outcome")
    assert port.sent == 1


def test_what_stands_and_differs_is_rejected_with_both_values() -> None:
    port = provider("timeout_after_commit", read_back=("altered",))

    status, stage, reasons = said(run(call(), provider=port))

    assert (status, stage) == ("reject", "readback")
    assert "amount_gbp:wanted=600.00:observed=altered" in reasons


@pytest.mark.parametrize("fault", ["unreadable", "unsettled", "altered"])
def test_a_success_that_cannot_be_read_back_is_unknown(fault: ReadBackFault) -> None:
    outcome = run(call(), provider=provider(read_back=(fault,)))

    assert said(outcome) == ("unknown", "postcondition", ("effect_not_verified",))
    assert outcome.effect is None


def test_a_refusal_is_the_providers_word() -> None:
    port = provider("refused")

    assert said(run(call(), provider=port)) == ("reject", "outcome", ("provider_refused:not today",))
    assert port.committed == 0


def test_the_same_key_for_another_effect_is_rejected() -> None:
    port = MemoryProvider()
    run(call(), provider=port)
    may = authority(confirmations=(confirmation(amount_gbp="700.00"),))

    outcome = run(call(amount_gbp="700.00"), asked=request(amount_gbp="700.00"), may=may, provider=port)

    assert said(outcome) == ("reject", "idempotency", ("idempotency key reused for a different effect",))
    assert port.committed == 1


def test_executing_what_was_not_prepared_raises() -> None:
    with pytest.raises(ValueError, match="was not prepared"):
        asyncio.run(MemoryProvider().execute(Prepared(COMMAND)))


def test_a_permission_revoked_before_the_effect_stops_it() -> None:
    port = MemoryProvider()

    outcome = run(call(), provider=port, later=authority(tools=frozenset({"quote_transfer"})))

    assert said(outcome) == ("deny", "authority", ("tool_not_delegated",))
    assert port.sent == 0


def test_a_balance_that_fell_before_the_effect_stops_it() -> None:
    port = MemoryProvider()

    outcome = run(call(), provider=port, later_world=World(facts={"current_balance_gbp": "1000.00"}))

    assert said(outcome)[:2] == ("reject", "world_state")
    assert port.sent == 0


def test_a_superseded_request_has_no_effect_however_late_it_is_known() -> None:
    port = MemoryProvider()
    newer = World(facts={"current_balance_gbp": "3000.00"}, request_version=2)

    before, between = run(call(), world=newer, provider=port), run(call(), later_world=newer, provider=port)

    assert (
        said(before) == said(between) == ("reject", "world_state", ("request_superseded:version=1:newest=2",))
    )
    assert port.sent == 0


def test_a_world_older_than_the_request_goes_to_a_person() -> None:
    stale = World(facts={"current_balance_gbp": "3000.00"}, request_version=1)

    outcome = run(call(), asked=replace(request(), version=2), world=stale)

    assert said(outcome) == (
        "review",
        "world_state",
        ("request_version_unknown:version=2:newest=1",),
    )


def test_a_tool_withdrawn_before_the_effect_is_no_repair() -> None:
    tool = replace(PAYMENTS.tools["schedule_transfer"], offered=Offered(facts={"account": ("open",)}))
    catalogue = Catalogue("c", "1", {"schedule_transfer": tool})
    facts = {"current_balance_gbp": "3000.00"}
    port = MemoryProvider()

    outcome = run(
        call(),
        catalogue=catalogue,
        world=World(facts={**facts, "account": "open"}),
        later_world=World(facts={**facts, "account": "frozen"}),
        provider=port,
    )

    assert said(outcome) == (
        "reject",
        "world_state",
        ("tool_no_longer_offered:schedule_transfer",),
    )
    assert port.sent == 0


def test_a_call_for_the_older_request_is_not_taken_for_the_newer() -> None:
    asked = replace(request(amount_gbp="550.00"), version=2)
    may = authority(confirmations=(confirmation(amount_gbp="550.00"),))

    outcome = run(call(), asked=asked, may=may)

    assert said(outcome) == ("repair", "semantics", ("amount_gbp:proposal=600.00:request=550.00",))


@given(
    st.lists(
        st.tuples(
            st.lists(
                st.sampled_from(["timeout_before_commit", "timeout_after_commit", "refused"]), max_size=3
            ),
            st.lists(st.sampled_from(["unreadable", "unsettled"]), max_size=3),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_however_faults_fall_a_key_commits_once_and_accepts_only_what_stands(
    rounds: list[tuple[list[ExecuteFault], list[ReadBackFault]]],
) -> None:
    async def all_rounds() -> None:
        port = MemoryProvider()
        for execute, read_back in rounds:
            before = port.sent
            port.fail_next(execute=execute, read_back=read_back)

            begun = await Run().begin(COMMAND, port)
            assert isinstance(begun, Execution)
            settled = await begun.carry_out()

            assert port.committed <= 1
            assert port.sent - before <= 2
            if settled.verdict.status == "accept":
                assert port.committed == 1
                assert settled.receipt is not None
                assert settled.receipt.provider_id == "tr_0001"

    asyncio.run(all_rounds())
