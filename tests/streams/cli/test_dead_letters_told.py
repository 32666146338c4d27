"""What `dead-letter` tells of letters: which were sent again since, and which have no place to go back to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ticketgate.codecs.records.headers import COORDINATE, ERROR_CODE, ERROR_REASON, ERROR_STAGE

from tests.streams.cli.conftest import Run

pytestmark = pytest.mark.kafka


def envelope(key: str | None, at: str, value: object, **headers: str) -> str:
    named = [[COORDINATE, at], *([name, text] for name, text in headers.items())]
    return json.dumps({"key": key, "value": value, "headers": named})


def letter(key: str | None, at: str) -> str:
    wrong = {ERROR_STAGE: "schema", ERROR_CODE: "wrong_field", ERROR_REASON: "told"}
    return envelope(key, at, {"id": key or "T-0", "state": "x"}, **wrong)


def produce(ticketgate: Run, tmp_path: Path, topic: str, *lines: str) -> None:
    file = tmp_path / f"{topic}.jsonl"
    file.write_text("\n".join(lines))
    assert ticketgate("produce", file, "--topic", topic).code == 0


def test_what_was_sent_again_is_marked_with_where_it_ended(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    dead, dispatch, review = (
        os.environ[f"TICKETGATE_TOPIC_{name}"] for name in ("DEAD_LETTER", "DISPATCH", "REVIEW")
    )
    produce(
        ticketgate,
        tmp_path,
        dead,
        *(letter(f"T-{number}", f"{tickets}:0:{10 * number}") for number in range(1, 5)),
        letter(None, f"{tickets}:0:50"),
    )
    produce(
        ticketgate,
        tmp_path,
        dispatch,
        envelope("T-1", f"{tickets}:0:99", {}),
        envelope("T-2", f"{tickets}:0:3", {}),  # before the letter: another matter
    )
    produce(ticketgate, tmp_path, review, envelope("T-3", f"{tickets}:2:1", {}))

    ran = ticketgate("dead-letter", "list")

    rows = [line.split() for line in ran.out.decode().splitlines()]
    marked = {row[0]: row[-1] for row in rows[1:]}
    assert marked == {
        f"{tickets}:0:10": dispatch,
        f"{tickets}:0:20": "told",
        f"{tickets}:0:30": review,
        f"{tickets}:0:40": "told",
        f"{tickets}:0:50": "told",
    }


def test_a_partition_that_is_gone_is_told_before_anything_is_sent(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    dead = os.environ["TICKETGATE_TOPIC_DEAD_LETTER"]
    produce(ticketgate, tmp_path, dead, letter("T-1", f"{tickets}:2:0"), letter("T-2", f"{tickets}:7:0"))

    dry, placed = (
        ticketgate("dead-letter", "replay", "--json"),
        ticketgate("dead-letter", "replay", "--by-key", "--json"),
    )

    told = {each["lay_at"]: each for each in dry.lines[0]["records"]}
    assert told[f"{tickets}:2:0"]["outcome"] == "ready"
    assert told[f"{tickets}:7:0"]["outcome"] == "held"
    assert "has no partition 7 but 3; --by-key" in told[f"{tickets}:7:0"]["because"]
    assert placed.lines[0]["ready"] == 2
