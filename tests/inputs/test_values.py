"""Values as the world writes them: money by its currency's minor units, nothing for null, moments by one reader."""

from __future__ import annotations

from typing import Any

import pytest
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Authority, EvidenceUnreadable, World
from ticketgate.agents.funnel.file.catalogue_file import CatalogueError, parse_catalogue
from ticketgate.agents.funnel.file.catalogue_lint import lint_catalogue
from ticketgate.agents.funnel.lookups.reading import authority_of
from ticketgate.codecs.records.proposal import Proposal, Request

from tests.support.funnel import bare_call, run


def shop(unit: str = "JPY", **bounds: str) -> Catalogue:
    """One tool that pays, with an optional quantity."""
    more = "\n".join(f'{name} = "{value}"' for name, value in bounds.items())
    return parse_catalogue(
        f"""
name = "shop"
version = "1"
[tools.pay]
purpose = "Pays"
kind = "effects"
serves = "pay"
does_not = "refund"
preconditions = [{{ says = "keeps the floor", name = "left", fact = "balance", less = "amount", floor = "floor" }}]
limits = [{{ field = "amount", limit = "most" }}]
[tools.pay.fields.amount]
type = "money"
unit = "{unit}"
role = "fact"
source = "request"
set_by = "requester"
{more}
[tools.pay.fields.floor]
type = "money"
unit = "{unit}"
role = "fact"
source = "request"
set_by = "requester"
required = false
[tools.pay.fields.qty]
type = "integer"
role = "fact"
source = "request"
set_by = "requester"
required = false
"""
    )


def paid(unit: str, amount: str, *, limit: str = "9999", balance: str = "9999", **given: Any) -> Any:
    values = {"amount": amount, **{name: value for name, value in given.items() if value is not None}}
    return run(
        bare_call({"amount": amount, **given}, "pay"),
        asked=Request(operation="pay", actor_id="ann", values=values),
        may=Authority(actor_id="ann", tools=frozenset({"pay"}), limits={"most": limit}),
        world=World(facts={"balance": balance}),
        catalogue=shop(unit),
    )


@pytest.mark.parametrize(
    ("unit", "amount", "sent"),
    [
        ("JPY", "600", "600"),
        ("JPY", "600.00", "600"),
        ("KWD", "1.234", "1.234"),
        ("KWD", "1.2", "1.200"),
        ("CLF", "1.2345", "1.2345"),
    ],
)
def test_an_amount_has_its_currencys_minor_units(unit: str, amount: str, sent: str) -> None:
    outcome = paid(unit, amount)

    assert outcome.verdict.status == "accept", outcome.verdict.reasons
    assert outcome.effect is not None
    assert outcome.effect.arguments["amount"] == sent


@pytest.mark.parametrize(("unit", "amount", "sent"), [("GBP", "1.2", "1.20"), ("points", "1.25", "1.25")])
def test_most_currencies_and_what_is_none_have_two_places(unit: str, amount: str, sent: str) -> None:
    assert paid(unit, amount).effect.arguments["amount"] == sent


@pytest.mark.parametrize(
    ("unit", "amount", "said"),
    [
        ("JPY", "600.50", "JPY has no minor units"),
        ("KWD", "1.2345", "at most 3 places"),
    ],
)
def test_what_cannot_be_of_the_currency_is_a_repair_that_can_be_made(
    unit: str, amount: str, said: str
) -> None:
    outcome = paid(unit, amount)

    assert (outcome.verdict.status, outcome.verdict.stage) == ("repair", "schema")
    assert said in outcome.verdict.reasons[0]


@pytest.mark.parametrize(("unit", "amount"), [("GBP", "1.234"), ("JPY", "1.000")])
def test_more_places_than_any_such_amount_has_are_refused(unit: str, amount: str) -> None:
    outcome = paid(unit, amount)

    assert (outcome.verdict.status, outcome.verdict.stage) == ("repair", "schema")
    assert "at most two places" in outcome.verdict.reasons[0]


def test_limits_and_facts_are_of_the_fields_currency() -> None:
    assert paid("KWD", "1.234", limit="1.234", balance="2.000", floor="0.766").verdict.status == "accept"
    assert paid("KWD", "1.235", limit="1.234").verdict.stage == "authority"
    assert paid("KWD", "1.234", balance="1.999", floor="0.766").verdict.reasons[0] == "left:0.765"
    assert paid("JPY", "600", limit="600.00").verdict.status == "accept"
    assert "limit_unknown:most" in paid("JPY", "600", limit="600.50").verdict.reasons[0]


def test_a_bound_that_cannot_be_of_its_currency_is_refused_by_line() -> None:
    with pytest.raises(CatalogueError, match="JPY has no minor units"):
        shop("JPY", at_most="600.50")
    shop("KWD", at_most="600.505")


@pytest.mark.parametrize("unit", ["EURO", "gbp", "£", "points", "XAU"])
def test_lint_names_a_unit_that_is_no_currency_with_minor_units(unit: str) -> None:
    found = {each.code: each for each in lint_catalogue(shop(unit))}

    assert "unknown_currency" in found
    assert "two places" in found["unknown_currency"].what
    assert ("GBP" in found["unknown_currency"].remedy) is (unit == "gbp")


def test_null_is_the_absence_of_a_field_that_may_be_absent() -> None:
    assert paid("GBP", "1.00", qty=None).verdict.status == "accept"
    assert "qty" not in paid("GBP", "1.00", qty=None).effect.arguments


def test_null_is_no_value_of_a_field_that_must_be_there() -> None:
    outcome = paid("GBP", None)  # type: ignore[arg-type]

    assert outcome.verdict.stage == "schema"
    assert outcome.verdict.reasons == ("wrong_type:amount",)


def test_integers_are_exact_beyond_floats() -> None:
    assert paid("GBP", "1.00", qty=2**53 + 1).effect.arguments["qty"] == 2**53 + 1


@pytest.mark.parametrize(
    "moment",
    ["2026-09-01 11:58:00Z", "2026-09-01T11:58Z", "2026-09-01T11:58:00+02", "2026-09-01T11:58:00+0200"],
)
def test_a_moment_is_read_in_one_way_everywhere(moment: str) -> None:
    proposal = Proposal(case_id="C", attempt=1, call="", request=Request(operation="pay", actor_id="ann"))
    value: Any = {
        "actor_id": "ann",
        "confirmations": [
            {"event_id": "e", "actor_id": "ann", "operation": "pay", "bound": {}, "confirmed_at": moment}
        ],
    }

    with pytest.raises(EvidenceUnreadable, match="no RFC 3339 time"):
        authority_of(value, proposal)
