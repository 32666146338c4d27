"""The experiment with a proposer of one's own: four systems over the same requests, each cause apart."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.funnel.file.catalogue_file import example, load_catalogue
from ticketgate.agents.workbench.funnel.cases import read_cases
from ticketgate.agents.workbench.funnel.comparing import MOST_TRIES, SYSTEMS, Answer, try_all
from ticketgate.agents.workbench.funnel.comparison import Change, Comparison

PAYMENTS = load_catalogue("payments")
COMMAND = Path(sys.executable).with_name("ticketgate")
SCHEDULED: Any = json.loads(example("payments.jsonl").splitlines()[4])
CALL = SCHEDULED["call"]


def labelled(name: str, *, admissible: list[str], **changed: Any) -> dict[str, Any]:
    line = {**SCHEDULED, "name": name, "label": {"admissible": admissible, "must_deny": False}, **changed}
    return {key: value for key, value in line.items() if key not in ("expect", "faults")}


UNSUPPORTED = {**SCHEDULED["request"], "operation": "close_account"}
LINES = [
    labelled("a", admissible=["schedule_transfer"]),
    labelled("b", admissible=["schedule_transfer"]),
    labelled("c", admissible=[], request=UNSUPPORTED),
]
TEXT = "\n".join(json.dumps(line) for line in LINES)


class Scripted:
    """A model that breaks its syntax unless it is constrained, drifts on `b`, and cannot abstain unless it may."""

    def __init__(self) -> None:
        self.questions: list[Mapping[str, Any]] = []

    async def __call__(self, question: Mapping[str, Any]) -> Answer:
        self.questions.append(question)
        return Answer(self.text(question), 1.0)

    def text(self, question: Mapping[str, Any]) -> str:
        schema = question["schema"]
        may_abstain = schema is None or "abstain" in json.dumps(schema["anyOf"][-1])
        if question["case"] == "c" and may_abstain:
            return '{"call_id": "c", "abstain": "unsupported_operation"}'
        text: str = CALL.replace("600.00", "660.00") if question["case"] == "b" else CALL
        return text[:-1] if schema is None and not question["errors"] else text


def compared(propose: Any) -> Comparison:
    tried = asyncio.run(try_all(read_cases(TEXT, source="test"), PAYMENTS, propose))
    return Comparison(hashes={"predictions_sha256": "0"}, tried=tried)


def counts(found: Comparison, measure: str) -> dict[str, int]:
    return {system: next(r.count for r in found.rates(system) if r.name == measure) for system in SYSTEMS}


def test_each_system_changes_what_it_is_for() -> None:
    found = compared(Scripted())

    # Constraint and asking again mend the form; the gates leave it as it is.
    assert counts(found, "conforming") == {"P": 1, "R": 3, "C": 3, "C-": 3, "G": 3}
    # Neither makes a drifted amount faithful.
    assert counts(found, "faithful") == {"P": 1, "R": 2, "C": 2, "C-": 1, "G": 2}
    # Only the gates keep a wrong effect from happening.
    assert counts(found, "unsafe_effect") == {"P": 0, "R": 1, "C": 1, "C-": 2, "G": 0}


def test_causes_are_varied_one_at_a_time() -> None:
    changes = {(each.cause, each.measure): each for each in compared(Scripted()).changes}

    assert (changes["constraint", "conforming"].gained, changes["constraint", "conforming"].lost) == (2, 0)
    assert changes["gates", "conforming"].difference == 0
    assert changes["gates", "unsafe_effect"].lost == 1
    assert changes["a way to abstain", "faithful"].gained == 1


def test_every_system_is_asked_in_the_same_words() -> None:
    proposer = Scripted()
    compared(proposer)

    for case in "abc":
        mine = [each for each in proposer.questions if each["case"] == case]
        for key in ("instructions", "offered", "request"):
            assert len({json.dumps(each[key]) for each in mine}) == 1
        with_schema = {each["system"] for each in mine if each["schema"] is not None}
        assert with_schema == {"C", "C-", "G"}
    again = [each for each in proposer.questions if each["errors"]]
    assert {each["system"] for each in again} == {"R"}
    assert all(each["previous"] for each in again)


def test_asking_again_ends() -> None:
    async def never(question: Mapping[str, Any]) -> Answer:
        return Answer("no", 0.5)

    found = compared(never)

    assert {each.asked for each in found.tried["R"]} == {MOST_TRIES}
    assert sum(counts(found, "conforming").values()) == 0
    assert "none was right" in "\n".join(found.lines())


def test_the_picture_is_one() -> None:
    root = ET.fromstring(compared(Scripted()).plot())  # noqa: S314 - our own picture

    assert len([each for each in root if each.tag.endswith("circle")]) == 4 * len(SYSTEMS)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_an_interval_holds_its_difference(gained: int, lost: int, same: int) -> None:
    change = Change("gates", "right", gained, lost, gained + lost + same)

    if change.interval is not None and change.difference is not None:
        low, high = change.interval
        assert low <= change.difference + 1e-9 + 1 / change.total
        assert high >= change.difference - 1e-9 - 1 / change.total
        assert low < high


PROPOSER = """
import json, sys
asked = json.load(sys.stdin)
print(CALL if asked["schema"] is not None else CALL[:-1])
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "requests.jsonl").write_text(TEXT, "utf-8")
    (folder / "proposer.py").write_text(f"CALL = {CALL!r}\n{PROPOSER}", "utf-8")
    return subprocess.run(
        [COMMAND, "funnel", "requests.jsonl", "--compare", "--catalogue", "payments", *arguments],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip


def test_the_command_refuses_to_run_without_predictions(tmp_path: Path) -> None:
    proposer = ("--proposer", f"{sys.executable} proposer.py")
    (tmp_path / "empty.md").touch()

    for arguments, what in (
        (proposer, "no predictions"),
        ((*proposer, "--predictions", "empty.md"), "it is empty"),
        ((*proposer, "--predictions", "nowhere.md"), "No such file"),
        (("--predictions", "empty.md"), "asks a proposer"),
    ):
        done = run(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert what in done.stderr


def test_the_command_asks_a_command_and_names_what_was_predicted(tmp_path: Path) -> None:
    (tmp_path / "predictions.md").write_text("C over P on conformance; G on unsafe effects.", "utf-8")

    done = run(
        tmp_path, "--proposer", f"{sys.executable} proposer.py", "--predictions", "predictions.md",
        "--plot", "rates.svg", "--json",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (
        report["predictions_sha256"] == hashlib.sha256((tmp_path / "predictions.md").read_bytes()).hexdigest()
    )
    assert report["systems"]["P"]["rates"]["conforming"]["numerator"] == 0
    assert report["systems"]["C"]["rates"]["conforming"]["numerator"] == 3
    assert (tmp_path / "rates.svg").read_text("utf-8").startswith("<svg")


def test_a_proposer_that_fails_writes_nothing_and_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "predictions.md").write_text("none", "utf-8")

    done = run(tmp_path, "--proposer", "false", "--predictions", "predictions.md", "--json")

    assert done.returncode == 0
    assert "exit code 1" in done.stderr
    assert json.loads(done.stdout)["systems"]["G"]["rates"]["conforming"]["numerator"] == 0


class Endpoint(BaseHTTPRequestHandler):
    """A proposer over HTTP, whose answer is its path's."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = CALL if asked["schema"] is not None else CALL[:-1]
        body = json.dumps({"text": text}) if self.path == "/json" else text
        self.send_response(500 if self.path == "/away" else 200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class calls it
        """Nothing on stderr."""


@pytest.mark.parametrize(("path", "conforming"), [("/json", 3), ("/text", 3), ("/away", 0)])
def test_a_proposer_may_be_an_endpoint(tmp_path: Path, path: str, conforming: int) -> None:
    (tmp_path / "predictions.md").write_text("none", "utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}{path}"
        done = run(tmp_path, "--proposer", url, "--predictions", "predictions.md", "--json")
    finally:
        server.shutdown()
        server.server_close()

    assert json.loads(done.stdout)["systems"]["C"]["rates"]["conforming"]["numerator"] == conforming
    assert ("status 500" in done.stderr) is not bool(conforming)
