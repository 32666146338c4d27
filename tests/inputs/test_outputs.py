"""What one command prints and another takes: each is fed to its reader, whatever the tickets say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ticketgate.codecs.records.ticket import Ticket, decode_ticket
from ticketgate.codecs.values.strict import encode
from ticketgate.streams.cli import cli
from ticketgate.streams.cli.running.examples import example_files
from ticketgate.streams.kafka.envelope import read_line, write_line

from tests.inputs.test_round_trips import POLICY, decided
from tests.inputs.test_round_trips import tickets as written_tickets
from tests.streams.cli.conftest import Run, no_settings, ticketgate
from tests.streams.cli.test_every_command import leaves
from tests.support.examples import text
from tests.support.fakes import record as kafka_record

__all__ = ["no_settings", "ticketgate"]

# A command takes tenths of a second, so a few examples each; the readers themselves have their hundreds beside this.
few = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HERE = "tests/inputs/test_outputs.py"
README = "tests/test_readme.py"
FOR_PEOPLE = "read by people and by their scripts, and by no command"

# By command: who reads what it prints or writes, and the test that feeds it.
READ_BY = {
    "consume": f"produce, case, policy diff, policy rescore, check: {HERE}, {README}",
    "case": f"funnel, policy test: {HERE}, tests/inputs/test_round_trips.py",
    "dead-letter list": f"dead-letter replay: {README}",
    "run": f"check: {HERE}",
    "policy import": f"every command that takes a policy: {HERE}",
    "funnel": f"release reads the report of --mutate: {HERE}",
    "examples": f"worker, produce, check, policy, release: {README}",
    "manual": "people; its lines are typed in tests/test_pages_live.py",
    "completion": "a shell: tests/streams/cli/test_first_hour.py",
    "demo": f"{FOR_PEOPLE}; its tickets are those of --tickets",
    "review settle": "a worker, by the topic of settlements: tests/streams/cli/review/test_review.py",
    "review list": FOR_PEOPLE,
    "review show": FOR_PEOPLE,
    "review export": "an evaluation outside; no command",
    "review forget": FOR_PEOPLE,
    "produce": "workers, by topics: tests/inputs/test_round_trips.py",
    "topics create": "the broker",
    "console user add": "console",
    "console user change": "console",
    "console user remove": "console",
    **dict.fromkeys(
        (
            "doctor",
            "worker",
            "settings",
            "serve",
            "check",
            "policy lint",
            "policy test",
            "policy show",
            "policy diff",
            "policy rescore",
            "release",
            "audit",
            "claims show",
            "claims rebuild",
            "reconcile",
            "ledger show",
            "ledger rebuild",
            "ledger dispatch",
            "replay",
            "dead-letter replay",
            "dead-letter skip",
            "console",
            "console user list",
        ),
        FOR_PEOPLE,
    ),
}


def test_of_every_command_it_is_said_who_reads_what_it_prints() -> None:
    assert not set(leaves(cli)) - set(READ_BY), "name who reads it, and feed it to them"
    root = Path(__file__).resolve().parents[2]
    for by in READ_BY.values():
        for word in by.replace(",", " ").split():
            assert not word.startswith("tests/") or (root / word).exists(), by


@contextmanager
def folder_of(tmp_path: Path) -> Iterator[Path]:
    """A folder for one example of a property."""
    made = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    made.mkdir()
    yield made


@few
@given(written_tickets, st.sampled_from([0.1, 0.9]))
def test_what_consume_prints_is_taken_by_every_command_that_says_so(
    ticketgate: Run, tmp_path: Path, written: Any, noul: float
) -> None:
    ticket = decode_ticket(encode(written))
    if not isinstance(ticket, Ticket):
        return
    data = decided(ticket, noul).encode()
    with folder_of(tmp_path) as folder:
        policy, lines, values, cases = (folder / name for name in ("p.toml", "l.jsonl", "v.json", "c.jsonl"))
        policy.write_text(POLICY, encoding="utf-8")
        lines.write_bytes(write_line(kafka_record(0, data)) + b"\n")
        values.write_bytes(data)

        case = ticketgate("case", lines)
        cases.write_bytes(case.out)
        ran = {
            "policy test": ticketgate("policy", "test", policy, cases),
            "policy diff": ticketgate("policy", "diff", policy, policy, "--decisions", lines),
            "check": ticketgate("check", values, "--policy", policy, "--json"),
        }

    assert case.code == 0, case.err
    assert read_line(lines.read_bytes()).value == data
    assert (ran["policy test"].code, ran["policy diff"].code) == (0, 0), ran
    assert ran["check"].code in (0, 3), ran["check"].err
    # Of the same answers under the same policy comes the same verdict.
    (judged,) = ran["check"].lines
    assert judged["selected"] == json.loads(data)["selected"]


@few
@given(
    st.lists(text.filter(str.strip), min_size=2, max_size=4, unique_by=lambda each: each.strip().casefold())
)
def test_what_import_prints_is_a_policy(ticketgate: Run, tmp_path: Path, labels: list[str]) -> None:
    schema = {"version": 3, "tasks": {"kind": {"labels": labels, "min_labels": 1, "max_labels": 1}}}
    with folder_of(tmp_path) as folder:
        given_schema, policy = folder / "schema.json", folder / "policy.json"
        given_schema.write_text(json.dumps(schema), encoding="utf-8")

        made = ticketgate("policy", "import", given_schema, "--name", "n")
        if made.code == 2:
            assert made.err.startswith(f"ticketgate: {given_schema}:")
            return
        policy.write_bytes(made.out)
        shown, linted = ticketgate("policy", "show", policy), ticketgate("policy", "lint", policy)

    assert made.code == 0, made.err
    assert (shown.code, linted.code) in ((0, 0), (0, 3)), (shown.err, linted.err)


def test_what_run_prints_is_checked(ticketgate: Run, tmp_path: Path) -> None:
    examples, answers, policy = dict(example_files()), tmp_path / "answers.json", tmp_path / "p.json"
    asked = json.loads(examples["request.json"].read_text())
    policy.write_text(json.dumps({"name": "p", "version": "1", "questions": asked["questions"]}))

    ran = ticketgate("run", "--request", examples["request.json"], "--json")
    answers.write_bytes(ran.out)
    checked = ticketgate("check", answers, "--policy", policy, "--json")

    assert ran.code == 0, ran.err
    assert checked.code in (0, 3), checked.err
    assert checked.lines[0]["probabilities"]


@pytest.mark.parametrize("name", ["payments"])
def test_the_report_of_mutate_is_read_by_release(ticketgate: Run, tmp_path: Path, name: str) -> None:
    examples = resources.files("ticketgate.agents.funnel") / "examples"
    for each in examples.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    report, funnel = tmp_path / "mutations.json", tmp_path / f"{name}.funnel.toml"
    report.unlink(missing_ok=True)

    made = ticketgate("funnel", "--example", name, "--mutate", "--out", report)
    text = funnel.read_text(encoding="utf-8")
    funnel.write_text(text.replace("cases_run =", 'mutations_refused = "./mutations.json"\ncases_run ='))
    asked = ticketgate("release", funnel)

    assert made.code == 0, made.err
    assert "mutations.json" not in asked.err
    assert "mutations_refused" not in asked.err
