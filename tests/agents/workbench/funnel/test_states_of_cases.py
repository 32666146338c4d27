"""A case may say in which state its effect is read back; only what the catalogue calls done is a success."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.file.catalogue_file import CatalogueError, example, parse_catalogue
from ticketgate.agents.funnel.file.catalogue_lint import lint_catalogue
from ticketgate.agents.workbench.funnel.cases import read_cases, run_cases
from ticketgate.agents.workbench.funnel.reproduce import reproduce

PAYMENTS = example("payments.toml")
SCHEDULED: Any = json.loads(example("payments.jsonl").splitlines()[4]) | {"name": "scheduled"}


def outcome(text: str, **faults: Any) -> tuple[str, str, tuple[str, ...]]:
    line = json.dumps(SCHEDULED | {"faults": faults, "expect": {"status": "accept", "stage": "outcome"}})
    catalogue = parse_catalogue(text)
    (result,) = asyncio.run(
        run_cases(read_cases(line, source="test"), catalogue=catalogue, provider=MemoryProvider())
    )
    verdict = result.outcome.verdict
    return str(verdict.status), str(verdict.stage), verdict.reasons


@pytest.mark.parametrize("execute", [[], ["timeout_after_commit"]])
@pytest.mark.parametrize(
    ("state", "status", "reason"),
    [
        ("cancelled", "reject", "undone:status=cancelled"),
        ("failed", "reject", "undone:status=failed"),
        ("processing", "unknown", "pending:status=processing"),
        ("archived", "unknown", "state_not_declared:status=archived"),
    ],
)
def test_equal_content_in_another_state_is_no_success(
    execute: list[str], state: str, status: str, reason: str
) -> None:
    found = outcome(PAYMENTS, execute=execute, read_back=[f"state:{state}"])

    assert (found[0], found[2]) == (status, (reason,))


@pytest.mark.parametrize("state", ["scheduled", "committed"])
def test_a_state_that_is_done_is_a_success(state: str) -> None:
    assert outcome(PAYMENTS, read_back=[f"state:{state}"])[0] == "accept"


@pytest.mark.parametrize("state", ["cancelled", "processing", "archived"])
def test_an_incident_of_a_state_becomes_a_case_that_shows_it(state: str) -> None:
    catalogue = parse_catalogue(PAYMENTS)
    line = json.dumps(SCHEDULED | {"faults": {"read_back": [f"state:{state}"]}, "label": {}, "expect": None})
    (result,) = asyncio.run(
        run_cases(read_cases(line, source="test"), catalogue=catalogue, provider=MemoryProvider())
    )
    found = reproduce(result.outcome.verdict)

    again = outcome(PAYMENTS, execute=list(found.execute), read_back=list(found.read_back))

    assert again[2] == result.outcome.verdict.reasons == found.reasons


def test_lint_names_an_effect_without_states() -> None:
    without = "\n".join(line for line in PAYMENTS.splitlines() if not line.startswith("states"))

    assert [each.place for each in lint_catalogue(parse_catalogue(without)) if each.code == "no_states"] == [
        "schedule_transfer"
    ]


@pytest.mark.parametrize(
    ("states", "what"),
    [
        ('{ done = ["scheduled"], undone = ["scheduled"] }', 'state "scheduled" is declared twice'),
        ("{ done = [] }", "states"),
        ('{ done = ["scheduled"], undon = ["x"] }', "undon"),
    ],
)
def test_states_that_cannot_be_meant_are_refused(states: str, what: str) -> None:
    text = "\n".join(
        f"states = {states}" if each.startswith("states") else each for each in PAYMENTS.splitlines()
    )

    with pytest.raises(CatalogueError, match=what):
        parse_catalogue(text)
