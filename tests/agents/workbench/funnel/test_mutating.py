"""The mutations of a catalogue's own good cases: what passes is found, and the report is of that catalogue alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.deciding.gate import Gate
from ticketgate.agents.effects.rules import after_success
from ticketgate.agents.funnel import judge
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.file import funnel_file
from ticketgate.agents.funnel.file.catalogue_file import example, load_catalogue, parse_catalogue
from ticketgate.agents.funnel.file.mutation_report import MutationReport, hash_of, read_report, shipped_report
from ticketgate.agents.funnel.file.release import check_release
from ticketgate.agents.funnel.gates.order import FUNNEL_GATES
from ticketgate.agents.workbench.funnel.mutating import mutate

PAYMENTS = load_catalogue("payments")
CASES = example("payments.jsonl")
COMMAND = Path(sys.executable).with_name("ticketgate")


def reported(catalogue: Catalogue = PAYMENTS, text: str = CASES) -> MutationReport:
    return asyncio.run(mutate(text, source="cases", catalogue=catalogue))


def test_nothing_that_must_not_pass_passes_and_every_kind_is_tried() -> None:
    report = reported()

    assert (report.survivors, report.untried) == ((), ())
    assert set(report.tools["schedule_transfer"]) == {
        "field", "order", "authority", "state", "time-out", "duplicate"
    }  # fmt: skip
    assert set(report.tools["quote_transfer"]) == {"field", "order", "authority"}


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        ("schema", "field"),
        ("semantics", "field"),
        ("world_state", "state"),
        ("world_state", "order"),
        ("authority", "authority"),
    ],
)
def test_a_gate_that_lets_everything_through_is_found(
    stage: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_gates = tuple(
        Gate(each.stage, lambda case: None) if str(each.stage) == stage else each for each in FUNNEL_GATES
    )
    monkeypatch.setattr(judge, "FUNNEL_GATES", open_gates)

    if stage == "schema":
        # What passes it cannot be read on: that is a fault, and so found as well.
        with pytest.raises(Exception):  # noqa: B017 - whichever value is met first
            reported()
        return
    assert any(f": {kind}: " in each for each in reported().survivors)


def test_an_effect_that_is_taken_for_done_in_any_state_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "ticketgate.agents.effects.executor.after_success"
    monkeypatch.setattr(name, lambda *given, states: after_success(*given, states=None))

    assert any("what stands is cancelled" in each for each in reported().survivors)


def test_a_tool_without_a_good_case_is_named() -> None:
    quotes = "\n".join(line for line in CASES.splitlines() if '"positive_quote"' in line)

    assert reported(text=quotes).untried == (
        "schedule_transfer: no case of it is accepted; write a good one",
    )


def test_the_report_that_comes_along_is_current() -> None:
    report = reported()

    assert shipped_report("payments") == report, (
        "make it anew: ticketgate funnel --example payments --mutate --out …"
    )
    assert report.fault(PAYMENTS, "schedule_transfer") is None
    assert report.fault(PAYMENTS, "another") == "no mutation of another was run"


@pytest.mark.parametrize(
    "changed",
    [
        ('above = "0"', 'above = "0.01"'),
        ("max_age_s = 86400", "max_age_s = 86401"),
        ('undone = ["cancelled", "failed"]', 'undone = ["cancelled"]'),
        ('says = "who is paid"', 'says = "whoever is paid"'),
    ],
)
def test_any_change_of_the_catalogue_asks_for_another_report(changed: tuple[str, str]) -> None:
    other = parse_catalogue(example("payments.toml").replace(*changed, 1))

    assert hash_of(other) != hash_of(PAYMENTS)
    fault = reported().fault(other, "schedule_transfer")
    assert fault == "the report is of another catalogue, or of another version of this one"


def test_a_survivor_is_no_report_to_release_by() -> None:
    fault = replace(reported(), survivors=("x: field: y",)).fault(PAYMENTS, "schedule_transfer")

    assert fault == "1 mutations passed, x: field: y among them"


def released(
    folder: Path, catalogue: str, *, report: Any = None, named: bool = True
) -> list[tuple[str, str]]:
    text = example("payments.funnel.toml").replace('catalogue = "payments"', 'catalogue = "./mine.toml"')
    (folder / "mine.toml").write_text(catalogue, "utf-8")
    # What the example leaves open is named.
    text = text.replace("automatic = false", "automatic = true").replace('"example: ', '"a test of ours: ')
    (folder / "payments.jsonl").write_text(example("payments.jsonl"), "utf-8")
    if named:
        text = text.replace("cases_run =", 'mutations_refused = "./mutations.json"\ncases_run =')
    if report is not None:
        (folder / "mutations.json").write_text(json.dumps(report), "utf-8")
    (folder / "funnel.toml").write_text(text, "utf-8")
    file = funnel_file.load_funnel_file(folder / "funnel.toml")
    return [(each.code, each.requirement) for each in check_release(file)]


def test_release_asks_for_the_report_on_the_users_own_catalogue(tmp_path: Path) -> None:
    mine = example("payments.toml").replace('name = "payments"', 'name = "mine"')
    report = reported(parse_catalogue(mine)).to_json()
    wanted = [("contradicted", "mutations_refused")]

    assert released(tmp_path, mine, named=False) == wanted
    assert released(tmp_path, mine) == wanted
    assert released(tmp_path, mine, report="not a report") == wanted
    assert released(tmp_path, mine, report=reported().to_json()) == wanted
    assert released(tmp_path, mine, report=report) == []
    assert released(tmp_path, mine.replace("86400", "86401"), report=report) == wanted


def test_the_command_writes_a_report_that_is_read_again(tmp_path: Path) -> None:
    out = tmp_path / "mutations.json"

    done = subprocess.run(
        [COMMAND, "funnel", "--example", "payments", "--mutate", "--out", out],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert read_report(out) == reported()
