"""`produce` that is interrupted says what the broker has, and where to go on; and nothing is lost or sent twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO

import pytest
from ticketgate.streams.parts.ports import free_port

from tests.streams.cli.conftest import Run, command, process

pytestmark = pytest.mark.kafka
COUNT = 400


def lines(count: int = COUNT) -> bytes:
    return b"".join(b'{"id":"T-%d","state":"x"}\n' % number for number in range(1, count + 1))


def wait_for_records(ticketgate: Run, topic: str, least: int) -> list[str]:
    """The ids in the topic, once there are so many."""
    deadline = time.monotonic() + 60
    while True:
        found = [line["id"] for line in ticketgate("consume", topic, "--values").lines]
        if len(found) >= least or time.monotonic() > deadline:
            return found


def start(*arguments: str, given: int | IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments), stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_line_to_go_on_from_leads_to_each_record_once(
    tickets: str, ticketgate: Run, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_bytes(lines())
    with start("produce", str(file), "--rate", "100", "--json") as running:
        wait_for_records(ticketgate, tickets, 20)

        running.send_signal(number)
        out, err = running.communicate(timeout=60)

    told = json.loads(out)
    assert running.returncode == 128 + number
    assert told["interrupted"] is True
    assert 20 <= told["sent"] < COUNT
    assert (told["next_line"], told["unknown"]) == (told["sent"] + 1, 0)
    assert f"interrupted by {number.name}; go on with --from-line {told['next_line']}" in err.decode()
    assert "Traceback" not in err.decode()

    rest = ticketgate("produce", file, "--from-line", str(told["next_line"]), "--json")

    assert rest.lines[0]["next_line"] == COUNT + 1
    found = wait_for_records(ticketgate, tickets, COUNT)
    assert sorted(found) == sorted(f"T-{number}" for number in range(1, COUNT + 1))


def test_standard_input_that_stays_open_does_not_hold_it_up(tickets: str, ticketgate: Run) -> None:
    with start("produce", "-", given=subprocess.PIPE) as running:
        assert running.stdin is not None
        running.stdin.write(lines(3))
        running.stdin.flush()
        wait_for_records(ticketgate, tickets, 3)

        running.send_signal(signal.SIGTERM)
        running.wait(timeout=60)
        assert running.stderr is not None
        err = running.stderr.read().decode()
        running.stdin.close()

    assert running.returncode == 143
    assert "sent 3 records" in err
    assert "--from-line 4" in err


def test_signals_one_after_the_other_end_it_whatever_it_does(tickets: str, tmp_path: Path) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_bytes(lines())
    with start("produce", str(file), "--rate", "50") as running:
        # It starts, connects, sends or waits for its turn.
        while running.poll() is None:
            running.send_signal(signal.SIGINT)
            try:
                running.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue

    # Before our first line ran, Python itself ends by the signal.
    assert running.returncode in (130, 1, -signal.SIGINT)


def test_a_file_that_is_read_through_is_interrupted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKETGATE_KAFKA", f"127.0.0.1:{free_port()}")
    pipe = tmp_path / "never-ending.csv"
    os.mkfifo(pipe)
    with start("produce", str(pipe), "--id", "a", "--state", "b") as running, pipe.open("wb") as writer:
        writer.write(b"a,b\n1,x\n")
        writer.flush()

        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=60)

    assert running.returncode == 143
    assert "sent 0 records" in err.decode()
    assert "--from-line 1" in err.decode()


def test_from_line_leaves_out_what_comes_before_it_unread(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_bytes(b"not a ticket\n\n" + lines(3))

    ran = ticketgate("produce", file, "--from-line", "4", "--json")

    assert (ran.code, ran.lines[0]["sent"]) == (0, 2)
    assert wait_for_records(ticketgate, tickets, 2) == ["T-2", "T-3"]


def test_from_line_counts_the_lines_of_standard_input_too(tickets: str, ticketgate: Run) -> None:
    ran = process("produce", "-", "--from-line", "3", given=lines(4))

    assert ran.code == 0
    assert sorted(wait_for_records(ticketgate, tickets, 2)) == ["T-3", "T-4"]


@pytest.mark.parametrize(
    ("magic", "named"),
    [
        (b"\xfd7zXZ\x00", "xz"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd"),
        (b"BZh91AY", "bunzip2"),
        (b"PK\x03\x04", "CSV"),
        (b"\xff\xfe{\x00", "UTF-8"),
    ],
)
def test_what_was_packed_is_named(ticketgate: Run, tmp_path: Path, magic: bytes, named: str) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_bytes(magic + b"\x00\n\x01")

    ran = ticketgate("produce", file)

    assert ran.code == 2
    assert f"{file}:1: this is " in ran.err
    assert named in ran.err
    assert "--raw" not in ran.err


def test_a_mark_of_order_before_the_first_line_is_no_part_of_it(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + lines(1))

    assert ticketgate("produce", file).code == 0
