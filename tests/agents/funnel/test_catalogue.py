"""Catalogues: what the loader refuses and where, what lint finds, what is published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ticketgate.agents.deciding.gate import run_gates
from ticketgate.agents.funnel.case import FunnelCase
from ticketgate.agents.funnel.catalogue import Catalogue, FieldCases, FieldSpec, compile_catalogue
from ticketgate.agents.funnel.evidence import World
from ticketgate.agents.funnel.file.catalogue_file import (
    CatalogueError,
    example,
    load_catalogue,
    parse_catalogue,
)
from ticketgate.agents.funnel.file.catalogue_lint import lint_catalogue
from ticketgate.agents.funnel.gates.order import FUNNEL_GATES
from ticketgate.codecs.records.proposal import Proposal, Request
from ticketgate.codecs.verdict import Stage, Status, Verdict

from ...support.funnel import AT, PAYMENTS, SUPPORT, bare_call, request

SMALL = """name = "small"
version = "1"

[tools.send_note]
purpose = "Sends a note"
kind = "effects"
serves = "note"
does_not = "close anything"
preconditions = []

[tools.send_note.fields.to]
type = "identifier"
role = "fact"
source = "request"
set_by = "requester"
"""


@pytest.mark.parametrize(
    "line", ['type = "identifier"', 'role = "fact"', 'source = "request"', 'set_by = "requester"']
)
def test_a_field_without_one_of_its_four_is_refused_by_line(line: str) -> None:
    name = line.split(" ")[0]

    with pytest.raises(CatalogueError) as caught:
        parse_catalogue(SMALL.replace(line, ""), source="small.toml")

    assert str(caught.value) == f'small.toml:11: tools.send_note.fields.to has no "{name}"\n  add it'


@pytest.mark.parametrize("line", ['kind = "effects"', 'does_not = "close anything"', "preconditions = []"])
def test_a_tool_says_what_it_does_and_does_not(line: str) -> None:
    with pytest.raises(CatalogueError, match=r"tools\.send_note has no"):
        parse_catalogue(SMALL.replace(line, ""))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('role = "fact"', 'role = "control"', "a control is bound by the application alone"),
        ('set_by = "requester"', 'set_by = "model"', "a fact must not come from the model"),
        ('source = "request"', 'source = "model"', "a fact must not come from the model"),
        ('"identifier"', '"money"', "money without a unit"),
        ('"identifier"', '"choice"', "one_of belongs to a choice"),
        ('"identifier"', '"integer"\nabove = "0"', "not a bound of the type integer"),
        ('"identifier"', '"money"\nunit = "GBP"\nabove = "1e3"', "not a decimal amount"),
        ('"identifier"', '"uuid"', "input should be"),
        ('version = "1"', 'version = "1"\ncolour = "red"', 'unknown field "colour" in the catalogue'),
        (
            "preconditions = []",
            'preconditions = []\nlimits = [{ field = "x", limit = "y" }]',
            "no money field",
        ),
        ("preconditions = []", "preconditions = [", "not TOML"),
        (
            "preconditions = []",
            f"preconditions = {'[' * 5_000}{']' * 5_000}",
            "nested more than 64 levels deep, at column",
        ),
        ("fields.to]", 'fields."to:all"]', "pattern"),
        ('version = "1"', "version = 2026-01-01", "version is a TOML date or time"),
    ],
)
def test_what_contradicts_itself_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(CatalogueError, match=said):
        parse_catalogue(SMALL.replace(old, new))


def test_control_from_model_text_is_refused() -> None:
    text = SMALL.replace('role = "fact"', 'role = "control"').replace('"requester"', '"model"')

    with pytest.raises(CatalogueError) as caught:
        parse_catalogue(text)

    assert len(caught.value.problems) == 2
    assert caught.value.problems[0].line == 11


SPECS = {
    "integer": FieldSpec(
        type="integer", role="fact", source="request", set_by="requester", above=0, at_most=5
    ),
    "boolean": FieldSpec(type="boolean", role="fact", source="request", set_by="requester"),
    "choice": FieldSpec(type="choice", role="fact", source="request", set_by="requester", one_of=("a", "b")),
    "text": FieldSpec(type="text", role="fact", source="request", set_by="requester", max_length=3),
}


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        ("integer", [1, 5], [0, 6, True, 1.0, "1", None]),
        ("boolean", [True, False], [0, 1, "true", None]),
        ("choice", ["a", "b"], ["A", "", "a ", 1]),
        ("text", ["abc"], ["", "abcd", [], {}]),
    ],
)
def test_a_field_takes_its_kind_and_nothing_like_it(kind: str, taken: list[Any], refused: list[Any]) -> None:
    assert [SPECS[kind].read(value) for value in taken] == taken
    for value in refused:
        with pytest.raises(ValueError):
            SPECS[kind].read(value)


@pytest.mark.parametrize("name", ["support", "payments"])
def test_a_funnel_file_is_told_from_a_catalogue_with_what_takes_it(name: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        parse_catalogue(example(f"{name}.funnel.toml"), source="x.toml")

    (problem,) = refused.value.problems
    assert str(refused.value).startswith("x.toml: a funnel file, and no catalogue\n")
    told = "`release` and `worker --funnel` take it; give --catalogue the catalogue that it names: "
    assert problem.remedy == told + name


def test_lint_finds_what_a_catalogue_leaves_unsaid() -> None:
    found = lint_catalogue(parse_catalogue(SMALL.replace("send_note", "manage_note")))

    assert [(each.code, each.place) for each in found] == [
        ("vague_name", "manage_note"),
        ("no_precondition", "manage_note"),
        ("no_states", "manage_note"),
        ("no_cases", "manage_note.to"),
    ]


@pytest.mark.parametrize(
    ("name", "is_vague"),
    [
        ("manageNote", True),
        ("note_manage", True),
        ("update_note", True),
        ("send_update", False),
        ("manager_note", False),
    ],
)
def test_lint_finds_a_verb_that_hides_what_happens(name: str, is_vague: bool) -> None:
    found = lint_catalogue(parse_catalogue(SMALL.replace("send_note", name)))

    assert ("vague_name" in [each.code for each in found]) is is_vague


@pytest.mark.parametrize("alias", ["scheduleTransfer", "transfer_schedule", "plan_payment"])
def test_lint_finds_two_names_for_one_thing(alias: str) -> None:
    tool = PAYMENTS.tools["schedule_transfer"]
    twice = Catalogue("twice", "1", {"schedule_transfer": tool, alias: tool})

    assert [each.code for each in lint_catalogue(twice)] == ["two_names", "same_purpose"]


@pytest.mark.parametrize(
    ("cases", "code"),
    [
        (FieldCases("600", "600.00", "some"), "cases_alike"),
        (FieldCases("600", "six", "some"), "case_not_well_formed"),
        (FieldCases("600", 660, "some"), "case_not_well_formed"),
        (FieldCases("600", "660", " "), "no_unclear_case"),
    ],
)
def test_lint_holds_a_field_to_its_three_cases(cases: FieldCases, code: str) -> None:
    tool = PAYMENTS.tools["quote_transfer"]
    amount: FieldSpec = replace(tool.fields["amount_gbp"], cases=cases)
    changed = Catalogue(
        "c", "1", {"quote_transfer": replace(tool, fields={**tool.fields, "amount_gbp": amount})}
    )

    assert [each.code for each in lint_catalogue(changed)] == [code]


@pytest.mark.parametrize(
    ("bounds", "codes"),
    [
        ({"above": None}, ["no_lower_bound"]),
        ({"above": None, "at_most": "9.00"}, ["no_lower_bound"]),
        ({"above": None, "at_least": "-9.00"}, []),
    ],
)
def test_lint_asks_how_low_money_may_be(bounds: dict[str, str | None], codes: list[str]) -> None:
    tool = PAYMENTS.tools["quote_transfer"]
    cases = FieldCases("6.00", "7.00", "some")
    amount = replace(tool.fields["amount_gbp"], cases=cases, **bounds)  # type: ignore[arg-type]
    changed = Catalogue(
        "c", "1", {"quote_transfer": replace(tool, fields={**tool.fields, "amount_gbp": amount})}
    )

    assert [each.code for each in lint_catalogue(changed)] == codes


def judged_by_cases(
    catalogue: Catalogue, name: str, *, wrong: str | None = None, unbound: str | None = None
) -> Verdict | None:
    """The gates on a call of a tool as its fields' cases have it: the request as admissible, and perhaps without one
    value; the call the same, and perhaps with one wrong."""
    tool = catalogue.tools[name]
    said = {field: spec.cases for field, spec in tool.fields.items() if spec.cases is not None}
    bound = {
        field: cases.admissible
        for field, cases in said.items()
        if tool.fields[field].role != "interpretation" and field != unbound
    }
    given = {field: cases.wrong if field == wrong else cases.admissible for field, cases in said.items()}
    asked = Request(
        operation=tool.serves,
        actor_id="a",
        roles=tool.offered.roles,
        purpose=next(iter(tool.offered.purposes), ""),
        phase=next(iter(tool.offered.phases), ""),
        values=bound,
    )
    facts = {fact: allowed[0] for fact, allowed in tool.offered.facts.items()}
    proposal = Proposal(case_id="c", attempt=1, call=bare_call(given, name), request=asked)
    return run_gates(FunnelCase(proposal, catalogue, None, World(facts=facts), AT), FUNNEL_GATES)


FIELDS_WITH_CASES = [
    pytest.param(catalogue, tool, field, id=f"{tool}.{field}")
    for catalogue in (PAYMENTS, SUPPORT)
    for tool, described in catalogue.tools.items()
    for field in described.fields
]


@pytest.mark.parametrize(("catalogue", "tool", "field"), FIELDS_WITH_CASES)
def test_the_three_cases_of_a_field_come_to_what_they_say(
    catalogue: Catalogue, tool: str, field: str
) -> None:
    spec = catalogue.tools[tool].fields[field]

    admissible = judged_by_cases(catalogue, tool)
    wrong = judged_by_cases(catalogue, tool, wrong=field)
    unclear = judged_by_cases(catalogue, tool, unbound=field)

    beyond = {Stage.WORLD_STATE, Stage.AUTHORITY}
    assert admissible is not None
    assert admissible.stage in beyond
    assert wrong is not None
    assert unclear is not None
    if spec.role == "interpretation":
        # What is the model's to read has no authority: the catalogue owns up to it, and the release grid asks more.
        assert {wrong.stage, unclear.stage} <= beyond
        return
    assert (wrong.stage, wrong.status) == (Stage.SEMANTICS, Status.REPAIR)
    assert [reason.split(":")[0] for reason in wrong.reasons] == [field]
    assert unclear.stage is Stage.SEMANTICS
    assert [reason.split(":")[0] for reason in unclear.reasons] == [field]
    # A person completes the request: no proposer may fill in what nobody asked for.
    assert unclear.status is (Status.REVIEW if spec.is_asked_for else Status.REPAIR)


def test_what_is_published_bears_its_hash_and_every_fields_setter() -> None:
    compiled = compile_catalogue(PAYMENTS, request(), {})
    again = compile_catalogue(load_catalogue("payments"), request("quote"), {})

    assert compiled.published["hash"] == compiled.ref.hash == again.ref.hash
    assert len(compiled.ref.hash) == 64
    assert "'set_by': 'application'" in str(compiled.published)
