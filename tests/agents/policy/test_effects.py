"""Effects: which are proposed, and that filling in arguments is substitution and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.codecs.verdict import Stage, Status

from ...support.deciding import decide_one, noul, policy, small


def effect(arguments: str, **fields: Any) -> Any:
    """The arguments of an effect that always applies, filled in for a ticket, or the reasons why not."""
    text = small(f'[[effects]]\ntool = "t"\n[effects.arguments]\n{arguments}', nouls="a")
    decision = decide_one({"a": noul(1)}, policy(text), **fields)
    if decision.verdict.status is Status.ACCEPT:
        (only,) = decision.effects
        return only.arguments
    assert decision.verdict.stage is Stage.POLICY
    assert decision.effects == ()
    return decision.verdict.reasons


def test_effects_whose_condition_holds_are_proposed_under_their_place_in_the_policy() -> None:
    text = small("""
        [[effects]]
        when = "a"
        tool = "first"
        [[effects]]
        when = "b"
        tool = "second"
        [[effects]]
        when = ["a", "!b"]
        tool = "third"
        [[effects]]
        tool = "always"
        arguments = { list = [1, { deep = true }], none = "" }
    """, nouls="ab")  # fmt: skip

    decision = decide_one({"a": noul(1), "b": noul(0)}, policy(text))

    assert [(each.place, each.tool) for each in decision.effects] == [
        (0, "first"),
        (2, "third"),
        (3, "always"),
    ]
    assert decision.effects[2].arguments == {"list": [1, {"deep": True}], "none": ""}


def test_no_effect_is_proposed_where_a_rule_is_broken() -> None:
    text = small('[[rules]]\nany_of = ["!a"]\n[[effects]]\ntool = "t"', nouls="a")

    assert decide_one({"a": noul(1)}, policy(text)).effects == ()


def test_a_lone_reference_keeps_the_values_type() -> None:
    attributes = {"n": 7, "f": 0.5, "t": True, "z": None, "o": {"k": [1, "x"]}, "deep": {"er": {"x": "y"}}}

    assert effect(
        'n = "{attributes.n}"\nf = "{attributes.f}"\nt = "{attributes.t}"\nz = "{attributes.z}"\n'
        'o = "{attributes.o}"\nx = "{attributes.deep.er.x}"\nid = "{ticket.id}"\ntenant = "{ticket.tenant}"\n'
        'in = ["{attributes.n}", { k = "{attributes.t}" }]',
        attributes=attributes,
        tenant="acme",
    ) == {
        "n": 7,
        "f": 0.5,
        "t": True,
        "z": None,
        "o": {"k": [1, "x"]},
        "x": "y",
        "id": "T-1",
        "tenant": "acme",
        "in": [7, {"k": True}],
    }


def test_within_text_numbers_and_booleans_are_written_as_json_writes_them() -> None:
    attributes = {"n": 7, "f": 0.1, "t": False, "s": "hé"}
    arguments = 'x = "{ticket.id}/{attributes.n}/{attributes.f}/{attributes.t}/{attributes.s}/{labels.a}"'

    assert effect(arguments, attributes=attributes) == {"x": "T-1/7/0.1/false/hé/true"}


def test_doubled_braces_write_braces() -> None:
    assert effect("""x = '{{"n": {attributes.n}}}'""", attributes={"n": 1}) == {"x": '{"n": 1}'}
    assert effect('x = "{{ticket.id}}"') == {"x": "{ticket.id}"}


@pytest.mark.parametrize(
    "attributes", [{}, {"order": {}}, {"order": "A-1"}, {"order": None}, {"order": ["id"]}]
)
def test_a_missing_attribute_sends_the_ticket_to_review_by_name(attributes: dict[str, object]) -> None:
    assert effect('x = "{attributes.order.id}"', attributes=attributes) == (
        'effect t: the ticket has no attribute "order.id"',
    )
    assert effect('x = "order {attributes.order.id}"', attributes=attributes) == (
        'effect t: the ticket has no attribute "order.id"',
    )


def test_every_missing_attribute_is_named_once() -> None:
    assert effect('x = "{attributes.b}"\ny = ["{attributes.a}", "{attributes.b}!"]') == (
        'effect t: the ticket has no attribute "b"',
        'effect t: the ticket has no attribute "a"',
    )


@pytest.mark.parametrize(("value", "kind"), [(None, "null"), ([1], "an array"), ({"k": 1}, "an object")])
def test_what_is_no_text_cannot_stand_within_text(value: object, kind: str) -> None:
    assert effect('x = "is {attributes.v}"', attributes={"v": value}) == (
        f'effect t: attribute "v" is {kind} and cannot stand within text',
    )


def test_a_missing_attribute_of_an_effect_that_does_not_apply_does_not_matter() -> None:
    text = small('[[effects]]\nwhen = "!a"\ntool = "t"\narguments = { x = "{attributes.none}" }', nouls="a")

    assert decide_one({"a": noul(1)}, policy(text)).verdict.status is Status.ACCEPT


@given(st.text())
def test_text_of_a_ticket_is_never_read_as_a_template(value: str) -> None:
    arguments = 'alone = "{attributes.v}"\nwithin = "<{attributes.v}>"'

    assert effect(arguments, attributes={"v": value}) == {"alone": value, "within": f"<{value}>"}
    assert effect(arguments, attributes={"v": "{ticket.id}{{"}) == {
        "alone": "{ticket.id}{{",
        "within": "<{ticket.id}{{>",
    }
