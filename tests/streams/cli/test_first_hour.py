"""What a newcomer types first: the examples, the completion, and the demo that kills."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ticketgate.streams.cli import COMMANDS
from ticketgate.streams.cli.running.completion import SHELLS
from ticketgate.streams.cli.running.examples import example_files

from tests.streams.cli.conftest import Run, command


def test_the_examples_are_written_once_and_what_was_changed_is_kept(ticketgate: Run, tmp_path: Path) -> None:
    folder = tmp_path / "first-hour"

    first, again = ticketgate("examples", folder), ticketgate("examples", folder)

    assert (first.code, again.code) == (0, 0)
    assert {path.name for path in folder.iterdir()} == {name for name, _ in example_files()}
    (folder / "policy.toml").write_text("mine")
    refused = ticketgate("examples", folder)
    assert refused.code == 2
    assert "policy.toml" in refused.err
    assert (folder / "policy.toml").read_text() == "mine"


def test_the_example_policy_keeps_its_cases_and_lint_warns_of_nothing(
    ticketgate: Run, tmp_path: Path
) -> None:
    ticketgate("examples", tmp_path)

    tested = ticketgate("policy", "test", tmp_path / "policy.toml", tmp_path / "cases.toml", "--strict")
    linted = ticketgate("policy", "lint", tmp_path / "policy.toml")

    assert (tested.code, linted.code) == (0, 0)
    assert b"warning" not in linted.out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_is_given_what_completes_commands(ticketgate: Run, shell: str) -> None:
    ran = ticketgate("completion", shell)

    assert ran.code == 0
    assert b"_TICKETGATE_COMPLETE" in ran.out


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("ticketgate do", {"doctor"}),
        ("ticketgate ", set(COMMANDS)),
        ("ticketgate produce --from", {"--from-line"}),
    ],
)
def test_what_is_typed_is_completed(typed: str, completed: set[str]) -> None:
    words = typed.split(" ")
    environment = {
        "_TICKETGATE_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }

    ran = subprocess.run(command(), env=environment, capture_output=True, text=True, check=False)

    assert {line.split(",")[1] for line in ran.stdout.splitlines()} == completed, ran.stderr


@pytest.mark.kafka
@pytest.mark.redis
def test_a_worker_that_is_killed_in_the_middle_loses_and_doubles_nothing(ticketgate: Run) -> None:
    ran = ticketgate("demo", "--kill", "--json")

    (told,) = ran.lines
    assert ran.code == 0, told
    assert (told["lost"], told["doubled"]) == (0, 0)
    assert 0 < told["taken_by_the_killed"] < told["records"]
    assert told["outcomes_wanted"] > 300


def test_two_demos_at_once_are_one_too_many(ticketgate: Run) -> None:
    ran = ticketgate("demo", "--kill", "--funnel")

    assert ran.code == 2
    assert "leave one of them out" in ran.err
