"""The release grid: what must stand, and that nothing is automatic without it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.funnel.catalogue import Catalogue, ConfirmationRule, FieldSpec, Tool
from ticketgate.agents.funnel.file.funnel_file import FunnelFile, FunnelFileError, load_funnel_file
from ticketgate.agents.funnel.file.funnel_specs import (
    CONSEQUENCES,
    CONTRIBUTIONS,
    Consequence,
    Contribution,
    HttpLookup,
    HttpProvider,
    LookupSpecs,
    RedisProvider,
    SignedLookup,
    ToolEffect,
)
from ticketgate.agents.funnel.file.release import check_release, require_release, tool_releases
from ticketgate.agents.funnel.file.release_facts import see
from ticketgate.agents.funnel.file.release_grid import release_grid
from ticketgate.streams.demo.funnel_cases import write_funnel_file

from ...support.funnel import PAYMENTS, SUPPORT, unkeyed

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "agents" / "funnel" / "examples"
GRID = release_grid()
CELLS = tuple(product(CONTRIBUTIONS, CONSEQUENCES))
EVERYTHING = dict.fromkeys(GRID.requirements, "a test of ours")

BANK = HttpProvider(url="http://bank", read_back_url="http://bank/{key}", idempotent_by_key=True, settle_s=30)
NOTHING_KNOWN = HttpProvider(url="http://bank")
LIVE = LookupSpecs(authority=HttpLookup(url="http://a/{actor_id}"), world=HttpLookup(url="http://w"))


def file(
    effect: ToolEffect | None = None,
    *,
    tool: str = "schedule_transfer",
    provider: HttpProvider | RedisProvider = BANK,
    catalogue: Catalogue | None = PAYMENTS,
    lookup: LookupSpecs | None = LIVE,
    path: Path = Path("funnel.toml"),
) -> FunnelFile:
    """A file of one tool."""
    return FunnelFile(
        path=path,
        catalogue=catalogue,
        lookup=None if catalogue is None else lookup,
        providers={"bank": provider},
        tools={tool: declared() if effect is None else effect},
    )


def declared(
    contribution: Contribution = "arguments",
    consequence: Consequence = "irreversible",
    **changed: object,
) -> ToolEffect:
    """An automatic effect with everything named."""
    whole = ToolEffect(
        provider="bank",
        contribution=contribution,
        consequence=consequence,
        automatic=True,
        stands=EVERYTHING,
    )
    return replace(whole, **changed)  # type: ignore[arg-type]


def said(given: FunnelFile) -> list[tuple[str, str]]:
    return [(found.code, found.requirement) for found in check_release(given)]


def mended(tool: str, **changed: object) -> Catalogue:
    """The payments with one tool changed."""
    tools: dict[str, Tool] = {**PAYMENTS.tools, tool: replace(PAYMENTS.tools[tool], **changed)}  # type: ignore[arg-type]
    return replace(PAYMENTS, tools=tools)


def with_reading(kind: str, **more: object) -> Catalogue:
    """The payments with a field that is the model's reading."""
    spec = FieldSpec(type=kind, role="interpretation", source="model", set_by="model", **more)  # type: ignore[arg-type]
    tool = PAYMENTS.tools["schedule_transfer"]
    return mended("schedule_transfer", fields={**tool.fields, "read": spec})


@pytest.mark.parametrize(("contribution", "consequence"), CELLS)
def test_no_cell_is_automatic_with_nothing_standing(
    contribution: Contribution, consequence: Consequence
) -> None:
    bare = declared(contribution, consequence, stands={})

    assert check_release(file(bare, provider=NOTHING_KNOWN))
    assert check_release(file(bare, provider=NOTHING_KNOWN, catalogue=None))
    # Nor by what can be seen alone: something only the operator can show is asked for in each.
    assert check_release(file(bare))
    assert check_release(file(bare, catalogue=None))


@given(st.sampled_from(CELLS), st.sets(st.sampled_from(sorted(GRID.requirements))), st.booleans())
def test_an_automatic_effect_without_a_finding_lacks_nothing_of_its_cell(
    pair: tuple[Contribution, Consequence], named: set[str], is_described: bool
) -> None:
    effect = declared(*pair, stands=dict.fromkeys(named, "a test of ours"))
    given = file(effect, catalogue=PAYMENTS if is_described else None)

    (release,) = tool_releases(given)

    is_clean = not release.never and all(each.shown_by and not each.fault for each in release.standings)
    if not check_release(given):
        assert is_clean
        require_release(given)
    elif is_clean:
        assert {code for code, _ in said(given)} <= {"remove_the_model", "contribution_understated"}


@pytest.mark.parametrize("consequence", CONSEQUENCES)
def test_without_a_contribution_the_model_goes(consequence: Consequence) -> None:
    effect = declared("none", consequence)

    assert said(file(effect)) == [("remove_the_model", "")]
    # A policy's effect has left the model out already.
    assert said(file(effect, tool="assign_queue", catalogue=None)) == []


@pytest.mark.parametrize("automatic", [True, False])
def test_the_model_is_to_go_whether_or_not_the_effect_is_automatic(automatic: bool) -> None:
    def told(contribution: Contribution, **changed: Any) -> str:
        effect = declared(contribution, automatic=automatic)
        return tool_releases(file(effect, **changed))[0].remove_the_model

    assert "leave the model out" in told("none")
    assert told("none", tool="assign_queue", catalogue=None) == ""
    assert told("arguments") == ""


@pytest.mark.parametrize("contribution", ["wording", "operation"])
def test_some_cells_are_never_automatic_whatever_stands(contribution: Contribution) -> None:
    assert ("forbidden", "") in said(file(declared(contribution, "irreversible")))
    assert said(file(declared(contribution, "irreversible", automatic=False))) == []


def test_the_grid_asks_more_where_more_is_at_stake() -> None:
    def cell(contribution: Contribution, consequence: Consequence) -> set[str]:
        found = GRID.cells[contribution].cell(consequence)
        return set(GRID.requirements) if isinstance(found, str) else set(found)

    # What can be undone has to be tried; what cannot is not asked for that.
    for contribution in CONTRIBUTIONS:
        for lower, higher in pairwise(CONSEQUENCES):
            assert cell(contribution, lower) - {"undo_tried"} <= cell(contribution, higher)
    for consequence in CONSEQUENCES:
        for lower_contribution, higher_contribution in (
            ("none", "choice"),
            ("none", "arguments"),
            ("arguments", "operation"),
        ):
            assert cell(lower_contribution, consequence) <= cell(higher_contribution, consequence)  # type: ignore[arg-type]


def test_every_requirement_is_asked_for_somewhere() -> None:
    asked = {
        name
        for row in GRID.cells.values()
        for consequence in CONSEQUENCES
        if not isinstance(cell := row.cell(consequence), str)
        for name in cell
    }

    assert asked == set(GRID.requirements)
    assert set(GRID.cells) == set(CONTRIBUTIONS)


@pytest.mark.parametrize("requirement", [name for name, each in GRID.requirements.items() if each.test])
def test_the_test_that_a_requirement_names_is_there(requirement: str) -> None:
    where, _, name = str(GRID.requirements[requirement].test).partition("::")

    assert re.search(rf"^(async )?def {name}\(", (ROOT / where).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    ("given", "requirement"),
    [
        (file(provider=replace(BANK, idempotent_by_key=False)), "idempotent_by_key"),
        (file(provider=NOTHING_KNOWN), "read_back"),
        (file(catalogue=mended("schedule_transfer", preconditions=())), "world_checked"),
        (file(catalogue=mended("schedule_transfer", limits=())), "limits_set"),
        (file(catalogue=mended("schedule_transfer", confirmation=None)), "confirmation_bound"),
        (
            file(catalogue=mended("schedule_transfer", confirmation=ConfirmationRule(("amount_gbp",), 60))),
            "confirmation_bound",
        ),
        (file(catalogue=with_reading("money", unit="GBP")), "facts_compared"),
        (file(catalogue=with_reading("identifier")), "meaning_linted"),
        (
            file(lookup=replace(LIVE, authority=SignedLookup(algorithms=("EdDSA",), key_files=("a.pem",)))),
            "revocable",
        ),
        (file(tool="unheard_of"), "judged"),
        (file(declared("choice", "costly"), catalogue=with_reading("text")), "choices_listed"),
    ],
)
def test_a_claim_does_not_outweigh_what_can_be_seen(given: FunnelFile, requirement: str) -> None:
    assert ("contradicted", requirement) in said(given)


def test_what_the_model_reads_is_owned_up_to() -> None:
    def understated(contribution: Contribution, catalogue: Catalogue) -> list[str]:
        found = check_release(file(declared(contribution, "costly"), catalogue=catalogue))
        return [each.what for each in found if each.code == "contribution_understated"]

    assert understated("wording", with_reading("choice", one_of=("a", "b"))) == [
        "read is the model's reading, so it contributes choice, not wording"
    ]
    assert understated("choice", with_reading("date")) == [
        "read is the model's reading, so it contributes arguments, not choice"
    ]
    assert understated("arguments", with_reading("date")) == []


def test_our_own_ledger_needs_no_measuring_of_it() -> None:
    ledger = RedisProvider(prefix="x:", url="redis://127.0.0.1:6379/0")
    stands = {
        name: "a test of ours"
        for name in GRID.requirements
        if name not in ("provider_key_tested", "settle_time_measured")
    }

    assert said(file(declared(stands=stands), provider=ledger)) == []
    assert {name for _, name in said(file(declared(stands=stands)))} == {
        "provider_key_tested",
        "settle_time_measured",
    }


def test_a_policys_effect_is_shown_by_what_its_operator_names() -> None:
    bare = file(declared("choice", "costly", stands={}), tool="assign_queue", catalogue=None)

    assert {name for code, name in said(bare) if code == "missing"} == {
        "choices_listed",
        "meaning_linted",
        "world_checked",
        "selection_measured",
        "failure_profile",
        "loss_bounded",
        "reconcile_staffed",
    }
    assert said(file(declared("choice", "costly"), tool="assign_queue", catalogue=None)) == []
    assert ("contradicted", "judged") in said(
        file(declared("arguments", "costly"), tool="assign_queue", catalogue=None)
    )


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    effect = declared(stands={**EVERYTHING, "cases_run": "./cases.jsonl"})
    given = file(effect, path=tmp_path / "funnel.toml")

    assert said(given) == [("contradicted", "cases_run")]
    (tmp_path / "cases.jsonl").write_text("{}\n", encoding="utf-8")
    assert said(given) == []


def test_a_refusal_at_start_is_one_line_with_the_way_out() -> None:
    with pytest.raises(FunnelFileError) as caught:
        require_release(file(declared(stands={})))

    assert str(caught.value) == (
        "funnel.toml: schedule_transfer may not be automatic: cases_run: nothing shows it (and 6 more); "
        "see `ticketgate release funnel.toml`, or write automatic = false"
    )


def test_every_check_is_of_a_requirement_that_there_is() -> None:
    from ticketgate.agents.funnel.file import release_facts

    checks = release_facts._CHECKS
    assert checks.keys() <= GRID.requirements.keys()
    # One that has a test here is checked here: a claim alone would not do.
    assert {name for name, each in GRID.requirements.items() if each.test} <= checks.keys()
    assert callable(see)


def test_the_support_examples_effects_are_what_they_are_declared() -> None:
    assert SUPPORT.tools.keys() == load_funnel_file(EXAMPLES / "support.funnel.toml").tools.keys()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("ticketgate"), "release", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_tells_what_stands_and_ends_with_0(tmp_path: Path) -> None:
    done = run(str(write_funnel_file(tmp_path, "http://127.0.0.1:1")))

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("schedule_transfer: arguments, irreversible, by bank: automatic\n")
    assert done.stdout.endswith("payments.funnel.toml: 1 tool, 1 automatic, 0 findings\n")


PLACEHOLDERS = [
    "example: where yours goes",
    "TODO",
    "tbd.",
    "n/a",
    "<the report>",
    "yes",
    "...",
    "your report",
    "to be done",
]


@pytest.mark.parametrize("claim", PLACEHOLDERS)
def test_a_placeholder_shows_nothing(claim: str) -> None:
    (found,) = check_release(file(declared(stands={**EVERYTHING, "loss_bounded": claim})))

    assert (found.requirement, found.code) == ("loss_bounded", "missing")
    assert "is a placeholder: nothing shows it" in found.what


@pytest.mark.parametrize(
    "claim",
    ["the daily ceiling", "OPS-123", "https://wiki.example/on-call", "tests/delivery", "examples/runbook.md"],
)
def test_a_name_of_what_shows_it_is_no_placeholder(claim: str) -> None:
    assert check_release(file(declared(stands={**EVERYTHING, "loss_bounded": claim}))) == ()


def test_the_example_says_where_things_go_and_is_not_automatic_by_that(tmp_path: Path) -> None:
    text = (EXAMPLES / "payments.funnel.toml").read_text(encoding="utf-8")
    path = tmp_path / "funnel.toml"
    path.write_text(text.replace("automatic = false", "automatic = true"), encoding="utf-8")

    done = run(str(path), "--json")

    assert done.returncode == 3
    faults = [each["what"] for each in json.loads(done.stdout)["findings"]]
    assert len(faults) == 7  # the file of cases is not beside it
    assert sum("placeholder" in each for each in faults) == 6


@pytest.mark.parametrize("is_there", [True, False])
def test_a_named_file_has_something_in_it(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "cases.jsonl").write_text("{}\n" if is_there else "", encoding="utf-8")
    effect = declared(stands={**EVERYTHING, "cases_run": "./cases.jsonl", "loss_bounded": "tests"})

    assert len(check_release(file(effect, path=tmp_path / "funnel.toml"))) == (not is_there)


def test_what_cannot_be_undone_is_confirmed_by_its_key() -> None:
    catalogue = unkeyed()

    found = {each.requirement: each.what for each in check_release(file(declared(), catalogue=catalogue))}

    assert "does not bind idempotency_key" in found["confirmation_bound"]


def test_the_command_says_to_remove_the_model_from_what_is_not_automatic_too(tmp_path: Path) -> None:
    text = (EXAMPLES / "payments.funnel.toml").read_text(encoding="utf-8")
    changed = {'contribution = "arguments"': 'contribution = "none"'}
    for written, meant in changed.items():
        assert written in text
        text = text.replace(written, meant)
    path = tmp_path / "funnel.toml"
    path.write_text(text, encoding="utf-8")

    done = run(str(path))

    assert done.returncode == 0, done.stderr
    assert "\n  remove  the model: nothing of the effect is the model's" in done.stdout


def test_the_command_ends_with_3_for_a_finding_and_2_for_a_bad_file(tmp_path: Path) -> None:
    text = (EXAMPLES / "payments.funnel.toml").read_text(encoding="utf-8")
    path = tmp_path / "funnel.toml"
    bare = text[: text.index("\n# Each names")].replace("automatic = false", "automatic = true")
    path.write_text(bare, encoding="utf-8")

    found, bad = run(str(path), "--json"), run(str(tmp_path / "none.toml"))

    told = json.loads(found.stdout)
    assert found.returncode == 3
    assert len(told["findings"]) == 7
    assert {each["requirement"] for each in told["findings"]} == {
        each["requirement"] for each in told["tools"][0]["requirements"] if not each["stands"]
    }
    assert bad.returncode == 2
    assert bad.stderr.count("\n") == 1
