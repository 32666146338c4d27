"""`ticketgate check`: the verdict on given answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.streams.cli.conftest import Run, process

POLICY = """
name = "support"
version = "1"

[questions.urgent]
type = "noul"
instructions = "Must this be handled today?"

[questions.review]
type = "noul"
instructions = "Should a person look at it?"

[[rules]]
id = "urgent-review"
implies = ["urgent", "review"]
message = "urgent requires review"

[[effects]]
when = "review"
tool = "assign"
arguments = { queue = "people" }
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def answers(folder: Path, **nouls: object) -> Path:
    path = folder / "answers.json"
    path.write_text(json.dumps({name: {"type": "noul", "noul": p} for name, p in nouls.items()}))
    return path


def test_answers_that_keep_the_rules_are_accepted_with_their_effects(
    ticketgate: Run, policy: Path, tmp_path: Path
) -> None:
    ran = ticketgate("check", answers(tmp_path, urgent=0.9, review=0.8), "--policy", policy)

    assert ran.code == 0
    assert ran.out.decode().splitlines()[:3] == [
        "accept at policy",
        "  selected: review, urgent",
        '  effect: assign {"queue": "people"}',
    ]


def test_a_contradiction_is_a_finding_with_probabilities_untouched(
    ticketgate: Run, policy: Path, tmp_path: Path
) -> None:
    ran = ticketgate("check", answers(tmp_path, urgent=0.9, review=0.2), "--policy", policy, "--json")

    (said,) = ran.lines
    assert ran.code == 3
    assert (said["verdict"]["status"], said["verdict"]["stage"]) == ("review", "policy")
    assert said["violations"] == [{"rule": "urgent-review", "message": "urgent requires review"}]
    assert said["probabilities"] == {"urgent": 0.9, "review": 0.2}
    assert (said["selected"], said["effects"]) == (["urgent"], [])


def test_answers_that_cannot_be_used_are_a_finding_at_their_gate(
    ticketgate: Run, policy: Path, tmp_path: Path
) -> None:
    ran = ticketgate("check", answers(tmp_path, urgent=1.5), "--policy", policy)

    assert ran.code == 3
    assert ran.out.startswith(b"review at answers\n")
    assert b'reason: question "review": no answer' in ran.out


def test_answers_come_from_standard_input_too(policy: Path, tmp_path: Path) -> None:
    given = answers(tmp_path, urgent=0.1, review=0.8).read_bytes()

    assert process("check", "-", "--policy", str(policy), given=given).code == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "not JSON"),
        (b'{"a": 1, "a": 2}', 'duplicate key "a"'),
        (b"[]", "answers must be an object"),
        (None, "cannot be read"),
    ],
)
def test_what_holds_no_answers_is_one_line_that_names_the_file(
    ticketgate: Run, policy: Path, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "answers.json"
    if content is not None:
        file.write_bytes(content)

    ran = ticketgate("check", file, "--policy", policy)

    assert (ran.code, ran.out) == (2, b"")
    assert str(file) in ran.err
    assert reason in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("text", [None, "name = ", POLICY + '\n[[rules]]\nexcludes = ["urgent", "vip"]\n'])
def test_a_policy_that_is_missing_or_wrong_is_said_with_its_place(
    ticketgate: Run, tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "policy.toml"
    if text is not None:
        path.write_text(text)

    ran = ticketgate("check", answers(tmp_path, urgent=0.1), "--policy", path)

    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.startswith(f"ticketgate: {path}")
    assert "Traceback" not in ran.err


def test_the_command_starts_without_what_it_does_not_need() -> None:
    code = (
        "import sys\nfrom ticketgate.streams.cli import main\n"
        "try: main(['check', '--help'])\n"
        "finally: print([name for name in ('faust', 'aiokafka', 'onnxruntime', 'redis', 'pydantic', 'rich')"
        " if name in sys.modules], file=sys.stderr)"
    )
    import subprocess
    import sys

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert ran.stdout.startswith(b"Usage: ticketgate check")
    assert ran.stderr == b"[]\n"
