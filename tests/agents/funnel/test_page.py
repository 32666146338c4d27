"""The funnel's page shows what is so."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.case import ABSTENTION_REASONS, Abstention, Call, read_envelope
from ticketgate.agents.funnel.file.catalogue_file import parse_catalogue
from ticketgate.agents.funnel.file.catalogue_lint import lint_catalogue
from ticketgate.agents.funnel.file.funnel_file import load_funnel_file
from ticketgate.agents.funnel.file.funnel_specs import CONSEQUENCES
from ticketgate.agents.funnel.file.release import check_release
from ticketgate.agents.funnel.file.release_grid import release_grid
from ticketgate.agents.funnel.lookups.reading import authority_of, world_of
from ticketgate.agents.workbench.funnel.cases import read_cases, run_cases
from ticketgate.agents.workbench.funnel.profile import profile
from ticketgate.agents.workbench.funnel.profiling import profile_cases
from ticketgate.codecs.records.proposal import Proposal, Request

from ...support.funnel import PAYMENTS

PAGE = (Path(__file__).parents[3] / "agents" / "funnel" / "README.md").read_text(encoding="utf-8")


def blocks(kind: str, section: str = "") -> list[str]:
    """What stands in fences of that kind, on the whole page or in a section."""
    _, _, text = PAGE.partition(f"## {section}\n") if section else ("", "", PAGE)
    text = text.partition("\n## ")[0] if section else text
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def block(kind: str, section: str = "") -> str:
    """The first of them."""
    return blocks(kind, section)[0]


@pytest.mark.parametrize("shown", [block("console"), block("console", "The failure profile")])
def test_the_shown_command_prints_what_is_shown(shown: str) -> None:
    typed, _, printed = shown.partition("\n")
    name, *arguments = typed.removeprefix("$ ").split()

    ran = subprocess.run(
        [Path(sys.executable).with_name(name), *arguments], capture_output=True, text=True, check=True
    )

    assert ran.stdout == printed


def test_the_shown_calls_are_read_and_every_abstention_is_named() -> None:
    call, abstention = (json.loads(line) for line in block("json", "A call").splitlines())

    assert isinstance(read_envelope(call), Call)
    assert isinstance(read_envelope(abstention), Abstention)
    assert (
        f"`abstain` is one of `{'`, `'.join(ABSTENTION_REASONS[:-1])}` and `{ABSTENTION_REASONS[-1]}`" in PAGE
    )


def test_the_shown_label_fits_a_case() -> None:
    case = json.loads(block("json", "A case")) | {"label": json.loads(block("json", "The failure profile"))}

    read = read_cases(json.dumps(case), source="page")
    profiled = asyncio.run(profile_cases(read, catalogue=PAYMENTS, provider=MemoryProvider()))

    assert profiled.profile.unlabelled == {"admissible": 0, "must_deny": 0, "cost": 0}


def test_every_rate_of_a_profile_is_explained() -> None:
    section = PAGE.partition("## The failure profile\n")[2].partition("\n## ")[0]
    explained = {
        name
        for row in re.findall(r"^\| ([a-z_, .A-Z]+) \|", section, re.MULTILINE)
        for name in row.split(", ")
    }

    assert explained >= {rate.name for rate in profile([]).rates}


def test_the_shown_catalogue_loads_and_has_no_findings() -> None:
    assert lint_catalogue(parse_catalogue(block("toml", "A catalogue"))) == ()


def test_the_shown_case_comes_out_as_it_says() -> None:
    line = json.dumps(json.loads(block("json", "A case")))

    (result,) = asyncio.run(
        run_cases(read_cases(line, source="page"), catalogue=PAYMENTS, provider=MemoryProvider())
    )

    assert result.unmet == ()


def test_the_shown_funnel_file_loads_and_passes_release(tmp_path: Path) -> None:
    (tmp_path / "funnel.toml").write_text(block("toml", "The funnel file"), encoding="utf-8")

    file = load_funnel_file(tmp_path / "funnel.toml")

    assert check_release(file) == ()


def test_the_shown_signed_source_and_claims_belong_into_it(tmp_path: Path) -> None:
    text = block("toml", "The funnel file")
    authority = re.compile(r"\[lookup\.authority\].*?\n\n", re.DOTALL)
    path = tmp_path / "funnel.toml"

    path.write_text(
        authority.sub(block("toml", "Evidence") + "\n", text) + block("toml", "Release"), encoding="utf-8"
    )
    (tmp_path / "payments.jsonl").touch()
    file = load_funnel_file(path)

    assert file.lookup is not None
    assert file.lookup.authority.adapter == "signed"
    assert set(file.tools["schedule_transfer"].stands) == {"cases_run", "reconcile_staffed"}


def test_the_shown_evidence_is_read() -> None:
    authority, world = (json.loads(each) for each in blocks("json", "Evidence"))
    proposal = Proposal(case_id="c", attempt=1, call="", request=Request(operation="o", actor_id="user_demo"))

    assert authority_of(authority, proposal).version == "a-17"
    assert world_of(world).version == "w-4"


def test_the_shown_grid_is_the_grid() -> None:
    grid = release_grid()
    shown = {
        cells[1].strip(" `"): [cell.strip() for cell in cells[2:-1]]
        for line in PAGE.partition("## Release\n")[2].split("\n")
        if (cells := line.split("|"))[0] == "" and len(cells) > 3
    }

    for contribution, row in grid.cells.items():
        assert shown[contribution] == [
            f"never: {cell}"
            if isinstance(cell := row.cell(each), str)
            else ", ".join(f"`{name}`" for name in cell)
            for each in CONSEQUENCES
        ]
    for name, requirement in grid.requirements.items():
        says, how = shown[name]
        assert says == requirement.says
        assert how.partition(";")[0] == ("named" if requirement.test is None else "seen")
