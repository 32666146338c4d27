"""Files that people write: one reader of each kind, which says where, what and the remedy, and never how it failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ticketgate.streams.cli import EXIT_BAD_INPUT
from ticketgate.streams.cli.running.demo import read_records

from tests.streams.cli.conftest import Ran, Run, no_settings, ticketgate
from tests.support.policies import SEED_POLICY

__all__ = ["no_settings", "ticketgate"]

SEED = SEED_POLICY.read_text(encoding="utf-8")
CATALOGUE = 'name = "c"\nversion = "1"\n'
CASES = '[[cases]]\nexpect = "accept"\nanswers = {}\n'

# What a file may hold and no reader takes, put behind its beginning, with what must be said of it.
FAULTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "an integer of 5,000 digits": (lambda text: text + b"x = " + b"9" * 5000 + b"\n", "64 bits"),
    "1,200 nested arrays": (lambda text: text + b"x = " + b"[" * 1200 + b"]" * 1200 + b"\n", "64 levels"),
    "100 nested arrays": (lambda text: text + b"x = " + b"[" * 100 + b"]" * 100 + b"\n", "64 levels"),
    "300 nested tables": (
        lambda text: text + b"x = " + b"{a=" * 300 + b"1" + b"}" * 300 + b"\n",
        "64 levels",
    ),
    "a byte order mark": (lambda text: b"\xef\xbb\xbf" + text, "byte order mark"),
    "UTF-16": (lambda text: text.decode().encode("utf-16"), "UTF-16"),
    "not UTF-8": (lambda text: text + b'x = "\xff"\n', "not UTF-8"),
    "an integer beyond 64 bits": (lambda text: text + b"x = 99999999999999999999\n", "64 bits"),
    "no TOML": (lambda text: text + b"x = \n", "not TOML"),
}

READERS: dict[str, tuple[str, Callable[[Run, Path], tuple[int, str]]]] = {
    "a policy": (SEED, lambda run, path: told(run("policy", "show", path))),
    "cases": (CASES, lambda run, path: told(run("policy", "test", SEED_POLICY, path))),
    "a catalogue": (CATALOGUE, lambda run, path: told(run("funnel", "--lint", "--catalogue", path))),
    "a funnel file": ("", lambda run, path: told(run("release", path))),
    "settings": ('group = "g"\n', lambda run, path: told(run("settings"))),
}


def told(ran: Ran) -> tuple[int, str]:
    return ran.code, ran.err


def line_of_end(content: bytes) -> int:
    return content.rstrip(b"\n").count(b"\n") + 1


@pytest.mark.parametrize("reader", READERS)
def test_what_no_toml_reader_takes_is_one_line_that_says_where(
    reader: str, ticketgate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, read = READERS[reader]
    path = tmp_path / "file.toml"
    monkeypatch.setenv("TICKETGATE_CONFIG", str(path))
    unmet: dict[str, str] = {}
    for fault, (spoil, word) in FAULTS.items():
        path.write_bytes(spoil(text.encode()))

        code, err = read(ticketgate, path)

        where = 1 if fault in ("a byte order mark", "UTF-16") else line_of_end(path.read_bytes())
        if code != EXIT_BAD_INPUT or "Traceback" in err or f"{path}:{where}" not in err or word not in err:
            unmet[fault] = err[:500]

    assert not unmet


def test_a_file_is_read_to_its_limit_and_what_is_no_file_not_at_all(
    ticketgate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, folder, none = tmp_path / "large.toml", tmp_path / "folder.toml", tmp_path / "none.toml"
    folder.mkdir()
    unmet: dict[str, str] = {}
    for reader, (text, read) in READERS.items():
        with large.open("wb") as file:
            file.write(text.encode())
            file.truncate(65 * 2**20)
        for path, word in ((large, "larger than"), (folder, "directory"), (none, "No such file")):
            monkeypatch.setenv("TICKETGATE_CONFIG", str(path))

            code, err = read(ticketgate, path)

            if code != EXIT_BAD_INPUT or str(path) not in err or word not in err:
                unmet[f"{reader}: {word}"] = err[:300]

    assert not unmet


# --- lines ---

SEPARATORS = "\u2028\u2029\x85"
DECISIONS = Path(__file__).parents[1] / "codecs/recorded"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_of_cases_end_at_a_line_feed_alone(end: str, ticketgate: Run, tmp_path: Path) -> None:
    case = {"name": f"a{SEPARATORS}b", "expect": "review", "answers": {}, "state": f"one{SEPARATORS}two"}
    path = tmp_path / "cases.jsonl"
    path.write_bytes(f"{json.dumps(case, ensure_ascii=False)}{end}{end}{json.dumps(case)}".encode())

    ran = ticketgate("policy", "test", SEED_POLICY, path, "--json")

    assert ran.code == 0, ran.err
    assert len(ran.lines[0]["cases"]) == 2


def test_lines_of_decisions_and_of_tickets_end_at_a_line_feed_alone(ticketgate: Run, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    line = {"id": "T", "state": f"one{SEPARATORS}two"}
    path.write_bytes(f"{json.dumps(line, ensure_ascii=False)}\r\n".encode() * 2)

    ran = ticketgate("policy", "diff", SEED_POLICY, SEED_POLICY, "--decisions", path, "--json")

    assert ran.code == 0, ran.err
    assert [record.value for record in read_records(path)] == [
        json.dumps(line, ensure_ascii=False).encode()
    ] * 2


def test_a_fault_of_a_line_names_its_line_and_column_once(ticketgate: Run, tmp_path: Path) -> None:
    cases, decisions = tmp_path / "cases.jsonl", tmp_path / "decisions.jsonl"
    cases.write_text('{"expect": "review"}\n{"expect": }\n', encoding="utf-8")
    decisions.write_text('{}\n{"a": }\n', encoding="utf-8")

    of_cases = ticketgate("policy", "test", SEED_POLICY, cases)
    of_decisions = ticketgate("policy", "diff", SEED_POLICY, SEED_POLICY, "--decisions", decisions)

    assert f"{cases}:2: not JSON" in of_cases.err
    assert f"{decisions}:2: not JSON" in of_decisions.err
    assert "at column 12; write one JSON object a line" in of_cases.err
    assert "at column 7; give one JSON object a line" in of_decisions.err
    assert "line 1" not in of_cases.err + of_decisions.err


# --- what people write by mistake ---


def test_what_was_meant_is_said(ticketgate: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    for text, what in (
        (SEED.replace("[[rules]]", "[rules]"), "[rules] is declared twice; write [[rules]] for each"),
        (
            SEED.replace("[[rules]]", "[rules]", 1).split("[[rules]]")[0],
            "[rules] is one table, where each rule has its own; write [[rules]]",
        ),
        (
            SEED.split("[[effects]]")[0] + '\n[effects]\ntool = "x"\n',
            "[effects] is one table, where each effect has its own; write [[effects]]",
        ),
        (
            SEED.replace('name = "seed"\n', "").replace("[[rules]]", 'name = "seed"\n[[rules]]', 1),
            "move it above the first table",
        ),
    ):
        path.write_text(text, encoding="utf-8")

        ran = ticketgate("policy", "show", path)

        assert ran.code == EXIT_BAD_INPUT
        assert what in ran.err.replace("\n  ", "; ")
