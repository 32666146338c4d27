"""Files that somebody packed: gzip is read wherever lines and files are, to its limits; another packing is named."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest
from ticketgate.streams.cli import packed
from ticketgate.streams.cli.running.examples import example_files

from tests.streams.cli.conftest import Run, broker, command, no_settings, process, ticketgate, tickets

__all__ = ["broker", "no_settings", "ticketgate", "tickets"]

EXAMPLES = dict(example_files())


def lines(first: int, last: int) -> bytes:
    return b"".join(b'{"id":"T-%d","state":"x"}\n' % number for number in range(first, last + 1))


def ids(ticketgate: Run, topic: str) -> list[str]:
    return sorted(line["id"] for line in ticketgate("consume", topic, "--values").lines)


@pytest.mark.kafka
def test_a_gzip_of_several_parts_is_sent_from_the_line_that_is_asked_for(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    file = tmp_path / "tickets.jsonl.gz"
    file.write_bytes(gzip.compress(lines(1, 3)) + gzip.compress(lines(4, 5)) + b"\0" * 9)

    sent = ticketgate("produce", file, "--from-line", "3", "--json")

    assert (sent.code, sent.lines[0]["sent"], sent.lines[0]["next_line"]) == (0, 3, 6), sent.err
    assert ids(ticketgate, tickets) == ["T-3", "T-4", "T-5"]


@pytest.mark.kafka
def test_a_gzip_on_standard_input_goes_out_as_it_comes(tickets: str, ticketgate: Run) -> None:
    content = gzip.compress(lines(1, 400))
    with subprocess.Popen(
        command("produce", "-"), stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as running:
        assert running.stdin is not None
        # The magic number comes in two pieces too.
        for piece in (content[:1], content[1:2], content[2:]):
            running.stdin.write(piece)
            running.stdin.flush()
        _, err = running.communicate(timeout=120)

    assert running.returncode == 0, err
    assert len(ids(ticketgate, tickets)) == 400


@pytest.mark.kafka
def test_a_gzip_that_ends_early_says_what_the_broker_has_and_where_to_go_on(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    whole = gzip.compress(b"".join(b'{"id":"T-%d","state":"%x"}\n' % (n, n**9) for n in range(1, 4000)))
    cut, file = whole[: len(whole) // 2], tmp_path / "tickets.jsonl.gz"
    file.write_bytes(cut)

    from_file = ticketgate("produce", file)
    came = process("produce", "-", given=cut)

    assert (from_file.code, came.code) == (2, 2)
    assert "nothing was sent" in from_file.err
    assert "the gzip ends before its end" in from_file.err
    acknowledged = len(ids(ticketgate, tickets))
    assert 0 < acknowledged < 4000
    line = f"standard input:{acknowledged + 1}: the gzip ends before its end"
    assert line in came.err
    assert f"sent before it: {acknowledged:,} records; go on with --from-line {acknowledged + 1}" in came.err

    file.write_bytes(whole)
    rest = ticketgate("produce", file, "--from-line", str(acknowledged + 1), "--json")

    assert (rest.code, rest.lines[0]["sent"]) == (0, 3999 - acknowledged)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda packed: packed[:-6] + b"\0" + packed[-5:], "corrupt"),
        (lambda packed: packed[:20] + b"\xff\xff\xff\xff" + packed[24:], "corrupt"),
        (lambda packed: packed + b"and more", "not gzip"),
        (lambda packed: packed[:4], "ends before its end"),
    ],
)
def test_a_gzip_that_is_none_is_one_line(ticketgate: Run, tmp_path: Path, wrong: object, told: str) -> None:
    file = tmp_path / "x.gz"
    file.write_bytes(wrong(gzip.compress(lines(1, 50))))  # type: ignore[operator]

    for arguments in (("produce", file), ("dead-letter", "replay", file), ("case", file)):
        ran = ticketgate(*arguments)

        assert ran.code == 2, arguments
        assert told in ran.err, arguments
        assert len(ran.err.splitlines()) == 1, ran.err


def test_a_bomb_costs_neither_memory_nor_hours(
    ticketgate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MAX_LINE_BYTES", 2**22)
    file, line, table = (tmp_path / name for name in ("bomb.gz", "line.gz", "bomb.csv.gz"))
    file.write_bytes(gzip.compress(b"\n" * 2**23))
    line.write_bytes(gzip.compress(b"x" * 2**23))
    table.write_bytes(line.read_bytes())

    for arguments in (
        ("produce", file),
        ("produce", line, "--raw"),
        ("produce", table, "--id", "a", "--state", "b"),
        ("dead-letter", "replay", file),
        ("case", line),
    ):
        ran = ticketgate(*arguments)

        assert ran.code == 2, (arguments, ran.err)
        assert "unpacks to" in ran.err, arguments


@pytest.mark.kafka
def test_a_table_in_gzip_is_read_by_its_header(tickets: str, ticketgate: Run, tmp_path: Path) -> None:
    file = tmp_path / "export.csv.gz"
    file.write_bytes(gzip.compress(b"Ticket ID;Description\nT-1;x\nT-2;y\n"))

    sent = ticketgate("produce", file, "--id", "Ticket ID", "--state", "Description")

    assert sent.code == 0, sent.err
    assert ids(ticketgate, tickets) == ["T-1", "T-2"]


def test_what_other_commands_read_may_be_gzip_too(ticketgate: Run, tmp_path: Path) -> None:
    policy = EXAMPLES["policy.toml"]
    cases, answers = tmp_path / "cases.toml.gz", tmp_path / "answers.json.gz"
    cases.write_bytes(gzip.compress(EXAMPLES["cases.toml"].read_bytes()))
    answers.write_bytes(gzip.compress(EXAMPLES["answers.json"].read_bytes()))

    tested = ticketgate("policy", "test", policy, cases)
    checked = ticketgate("check", answers, "--policy", policy)

    assert (tested.code, checked.code) == (0, 3), (tested.err, checked.err)


def test_another_packing_is_named_by_every_command(ticketgate: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\x28\xb5\x2f\xfd\x00\x00\n\x01")

    for arguments in (("produce", file), ("dead-letter", "replay", file), ("case", file)):
        ran = ticketgate(*arguments)

        assert ran.code == 2
        assert "zstd" in ran.err, ran.err
