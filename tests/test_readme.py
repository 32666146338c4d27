"""What the README tells a reader to type exists, and prints what it says."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from ticketgate.streams.config.settings import load_settings

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
COMMAND = Path(sys.executable).with_name("ticketgate")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def typed() -> list[str]:
    """Each command of ours that the README types, without its environment and what it is piped from or to."""
    consoles = [block for kind, block in BLOCKS if kind == "console"]
    lines = [line for block in consoles for line in block.splitlines() if line.startswith("$ ")]
    commands = [re.search(r"\.venv/bin/ticketgate ([^|>#]*)", line) for line in lines]
    return sorted({command[1].strip() for command in commands if command})


def run(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.parametrize("line", typed())
def test_a_command_that_the_readme_types_exists_with_its_flags(line: str) -> None:
    words = shlex.split(line)
    names = []
    for word in words:
        if not re.fullmatch(r"[a-z-]+", word) or word.startswith("-"):
            break
        names.append(word)

    helped = run(*names[:2], "--help")
    if helped.returncode:  # a command with an argument, and no group
        helped = run(*names[:1], "--help")

    assert helped.returncode == 0, helped.stderr
    for flag in (word for word in words if word.startswith("--")):
        assert flag in helped.stdout, f"{flag} in {line}"


def test_the_check_that_the_readme_shows_prints_what_it_says(tmp_path: Path) -> None:
    (block,) = [block for kind, block in BLOCKS if kind == "console" and "check answers.json" in block]
    answers = block[block.index("{") : block.index("$ .venv")]
    (tmp_path / "answers.json").write_text(answers)
    said = block[block.index("\n", block.index("$ .venv")) + 1 :]

    ran = run(
        "check", "answers.json", "--policy", str(ROOT / "tests/support/files/seed.toml"), folder=tmp_path
    )

    assert (ran.stdout, ran.returncode) == (said, 3)


def test_the_policy_that_the_readme_shows_loads(tmp_path: Path) -> None:
    (policy,) = [block for kind, block in BLOCKS if kind == "toml" and "kafka_security" not in block]
    (tmp_path / "policy.toml").write_text(policy)
    (tmp_path / "answers.json").write_text("{}")

    ran = run("check", str(tmp_path / "answers.json"), "--policy", str(tmp_path / "policy.toml"))

    assert ran.returncode == 3, ran.stderr


def test_the_call_that_the_readme_proposes_is_accepted_by_the_evidence_that_it_writes(tmp_path: Path) -> None:
    (proposal,) = [json.loads(block) for kind, block in BLOCKS if kind == "json"]
    written = dict(re.findall(r"""^store\.set\("support:(\w+):\S+", '(.*)'\)$""", README, re.MULTILINE))
    evidence = {name: json.loads(value) for name, value in written.items()}
    wanted = {"status": "accept", "stage": "postcondition"}
    case = {"name": "shown", "at": "2026-09-01T12:00:00Z", **evidence, "expect": wanted}
    (tmp_path / "case.jsonl").write_text(
        json.dumps({**case, "call": proposal["call"], "request": proposal["request"]})
    )

    ran = run("funnel", str(tmp_path / "case.jsonl"), "--catalogue", "support")

    assert (set(evidence), ran.returncode) == ({"authority", "world"}, 0), ran.stdout + ran.stderr


def test_the_settings_that_the_readme_shows_are_taken(tmp_path: Path) -> None:
    (given,) = [block for kind, block in BLOCKS if kind == "toml" and "kafka_security" in block]
    (tmp_path / "ticketgate.toml").write_text(given)

    loaded = load_settings(
        environment={
            "TICKETGATE_CONFIG": str(tmp_path / "ticketgate.toml"),
            "TICKETGATE_KAFKA_PASSWORD": "s3cret",
        }
    )

    assert loaded.settings.kafka_security == "sasl_ssl"


@pytest.mark.parametrize("code", [block for kind, block in BLOCKS if kind == "python"])
def test_python_in_the_readme_is_python(code: str) -> None:
    ast.parse(code)


def test_links_in_the_readme_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]

    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
