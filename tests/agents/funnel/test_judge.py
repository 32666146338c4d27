"""Judging by itself: evidence in, verdict and receipts out; and the second look just before an effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ticketgate.agents.funnel.catalogue import Catalogue, Offered
from ticketgate.agents.funnel.evidence import Authority, Evidence, World
from ticketgate.agents.funnel.judge import Judged, decided_again, judge, judge_again
from ticketgate.codecs.records.proposal import Proposal, ProposerModel
from ticketgate.codecs.verdict import Verdict

from ...support.funnel import (
    AT,
    KEY,
    PAYMENTS,
    VALUES,
    WORLD,
    authority,
    bare_call,
    call,
    confirmation,
    request,
    unkeyed,
)

UNREADABLE_WORLD: dict[str, Any] = {"world": World(), "unreadable": ("world:no JSON",)}
UNREADABLE_AUTHORITY: dict[str, Any] = {"authority": None, "unreadable": ("authority:another actor",)}

# A catalogue whose transfer is offered by a fact of the world.
BY_FACT: Catalogue = replace(
    PAYMENTS,
    tools={
        **PAYMENTS.tools,
        "schedule_transfer": replace(
            PAYMENTS.tools["schedule_transfer"], offered=Offered(facts={"is_open": (True,)})
        ),
    },
)
OPEN = World(facts={**WORLD.facts, "is_open": True})


def evidence(**changed: Any) -> Evidence:
    defaults: dict[str, Any] = {"authority": authority(version="a7"), "world": replace(WORLD, version="w3")}
    return Evidence(**{**defaults, **changed})


def proposal(text: str = call(), **changed: Any) -> Proposal:
    return Proposal(**{"case_id": "case_1", "attempt": 1, "call": text, "request": request(), **changed})


def first(given: Proposal, seen: Evidence | None = None, catalogue: Catalogue = PAYMENTS) -> Judged:
    return judge(
        given,
        catalogue=catalogue,
        evidence=evidence() if seen is None else seen,
        at=AT,
        namespace="tests",
    )


CONFIRMED = confirmation().digest


def again(
    given: Proposal, seen: Evidence, catalogue: Catalogue = PAYMENTS, used: str | None = CONFIRMED
) -> Verdict | None:
    return judge_again(given, catalogue=catalogue, evidence=seen, at=AT, confirmation=used)


def told(verdict: Verdict | None) -> tuple[str, str, tuple[str, ...]] | None:
    return None if verdict is None else (str(verdict.status), str(verdict.stage), verdict.reasons)


def test_an_accepted_effect_has_a_command_under_the_key_that_the_application_bound() -> None:
    found = first(proposal())

    assert told(found.verdict) == ("accept", "authority", ())
    assert found.command is not None
    assert (found.command.tool, found.command.key) == ("schedule_transfer", KEY)
    assert found.repair is None


def test_without_a_bound_key_the_command_has_the_cases_own_whatever_the_attempt() -> None:
    asked = request(control={})
    keys = {
        number: first(proposal(request=asked, attempt=number), catalogue=unkeyed()).command
        for number in (1, 2)
    }

    assert keys[1] is not None
    assert keys[1] == keys[2]


def test_an_accepted_observation_has_no_command() -> None:
    found = first(proposal(bare_call(VALUES, "quote_transfer"), request=request("quote")))

    assert told(found.verdict) == ("accept", "outcome", ())
    assert found.command is None
    assert found.decision.effect_created is False


@pytest.mark.parametrize("text", ["{", call(amount_gbp="660"), call("quote_transfer")])
def test_what_is_not_accepted_has_no_command(text: str) -> None:
    assert first(proposal(text)).command is None


def test_the_receipt_names_evidence_model_and_moment() -> None:
    model = ProposerModel("small", "7")

    found = first(proposal("{", model=model))

    assert found.decision.evidence == {"authority": "a7", "world": "w3"}
    assert (found.decision.model, found.decision.at) == (model, AT)
    assert found.repair is not None
    assert found.repair.model == model


def test_a_repair_receipt_names_the_proposing_model_and_the_proposals_schema() -> None:
    model = ProposerModel("small", "7")

    repair = first(proposal(call(amount_gbp=600), model=model)).repair

    assert repair is not None
    assert repair.model == model
    assert repair.to_json()["proposal_schema"] == "proposal/1"


def test_an_unreadable_authority_is_reviewed_and_never_taken_for_none() -> None:
    seen = evidence(**UNREADABLE_AUTHORITY)
    reviewed = ("review", "authority", ("evidence_unreadable:authority:another actor",))

    assert told(first(proposal(), seen).verdict) == reviewed
    assert told(again(proposal(), seen)) == reviewed
    quote = proposal(bare_call(VALUES, "quote_transfer"), request=request("quote"))
    assert told(first(quote, seen).verdict) == reviewed


def test_an_authority_that_was_read_beside_an_unreadable_one_lets_nothing_pass() -> None:
    seen = evidence(unreadable=("authority:bad signature",))

    assert told(first(proposal(), seen).verdict) == (
        "review",
        "authority",
        ("evidence_unreadable:authority:bad signature",),
    )


def test_an_unreadable_world_is_reviewed_with_all_that_is_unreadable() -> None:
    seen = Evidence(authority=None, world=World(), unreadable=("authority:x", "world:y"))

    assert told(first(proposal(), seen).verdict) == (
        "review",
        "world_state",
        ("evidence_unreadable:authority:x", "evidence_unreadable:world:y"),
    )


@pytest.mark.parametrize(
    ("text", "stage"),
    [("{", "parse"), ("{}", "envelope"), (call(amount_gbp=1), "schema"), (call(amount_gbp="1"), "semantics")],
)
def test_shape_and_meaning_are_judged_whatever_cannot_be_read(text: str, stage: str) -> None:
    for seen in (evidence(**UNREADABLE_WORLD), evidence(**UNREADABLE_AUTHORITY)):
        found = first(proposal(text), seen).verdict

        assert (found.status, found.stage) == ("repair", stage)


def test_no_repair_is_spent_on_a_tool_whose_facts_could_not_be_read() -> None:
    seen = evidence(**UNREADABLE_WORLD)

    assert told(first(proposal(), seen, BY_FACT).verdict) == (
        "review",
        "world_state",
        ("evidence_unreadable:world:no JSON",),
    )
    assert told(first(proposal(call("unknown")), seen, BY_FACT).verdict) == (
        "repair",
        "tool_catalogue",
        ("unknown_tool",),
    )


def test_an_abstention_is_not_right_because_the_facts_could_not_be_read() -> None:
    abstention = '{"call_id": "c", "abstain": "unsupported_operation"}'
    seen = evidence(**UNREADABLE_WORLD)

    assert told(first(proposal(abstention), evidence(), BY_FACT).verdict) == (
        "accept",
        "abstention",
        ("abstained:unsupported_operation",),
    )
    assert first(proposal(abstention), seen, BY_FACT).verdict.status == "review"
    assert (
        first(proposal(abstention, request=request("close_account")), seen, BY_FACT).verdict.status
        == "accept"
    )


def test_the_second_look_lets_pass_what_still_holds() -> None:
    assert again(proposal(), evidence()) is None


def test_the_second_look_asks_for_the_confirmation_that_was_used_up() -> None:
    assert first(proposal()).confirmations == (CONFIRMED,)
    other = evidence(authority=authority(confirmations=(replace(confirmation(), event_id="ev_2"),)))

    assert told(again(proposal(), other)) == ("deny", "authority", ("explicit_confirmation_missing",))
    # As a decision that was made before confirmations were used once.
    assert told(again(proposal(), evidence(), used=None)) == (
        "deny",
        "authority",
        ("explicit_confirmation_missing",),
    )


def test_every_confirmation_that_stands_may_be_used_and_no_other() -> None:
    given = tuple(replace(confirmation(), event_id=f"ev_{n}") for n in (1, 2, 1))
    void = replace(confirmation(amount_gbp="60.00"), event_id="ev_3")
    seen = evidence(authority=authority(confirmations=(void, *given)))

    assert first(proposal(), seen).confirmations == (given[0].digest, given[1].digest)


def test_the_second_look_sees_a_permission_that_was_revoked() -> None:
    revoked = evidence(authority=Authority(actor_id="user_demo", version="a8"))

    verdict = again(proposal(), revoked)

    assert told(verdict) == ("deny", "authority", ("tool_not_delegated",))
    assert verdict is not None
    receipt = decided_again(first(proposal()).decision, verdict, revoked, at=AT)
    assert (receipt.verdict, receipt.evidence["authority"]) == (verdict, "a8")


def test_the_second_look_asks_for_no_repair() -> None:
    assert told(again(proposal(), evidence(world=WORLD), BY_FACT)) == (
        "reject",
        "world_state",
        ("tool_no_longer_offered:schedule_transfer",),
    )
    tighter = replace(
        PAYMENTS.tools["schedule_transfer"],
        fields={
            name: spec
            for name, spec in PAYMENTS.tools["schedule_transfer"].fields.items()
            if name != "payee_id"
        },
    )
    changed = replace(PAYMENTS, tools={**PAYMENTS.tools, "schedule_transfer": tighter})
    assert told(again(proposal(), evidence(), changed)) == ("reject", "schema", ("extra:payee_id",))


def test_the_second_look_carries_no_abstention_out() -> None:
    abstention = proposal(
        '{"call_id": "c", "abstain": "unsupported_operation"}', request=request("close_account")
    )

    assert again(abstention, evidence()) is not None
    verdict = again(abstention, evidence())
    assert verdict is not None
    assert verdict.status == "reject"
