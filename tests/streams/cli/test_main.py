"""The command as a whole: what it lists, what it says of what it lacks, and how it ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import COMMANDS
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.ports import free_port

from tests.streams.cli.conftest import Ran, Run, command, process

SAMPLE_POLICY = Path(__file__).resolve().parents[3] / "streams" / "samples" / "support.toml"
SUPPORT_FUNNEL = Path(__file__).resolve().parents[3] / "agents/funnel/examples/support.funnel.toml"


def said(ran: Ran) -> str:
    """The one line that a command which could not start ends with; a worker's log may stand above it."""
    assert "Traceback" not in ran.err
    *log, last = ran.err.splitlines()
    assert not [line for line in log if line.startswith("ticketgate: ")]
    return last


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 dead letters"), (1, "1 dead letter"), (2_000, "2,000 dead letters")]
)
def test_one_is_told_in_the_singular(count: int, told: str) -> None:
    assert counted(count, "dead letter") == told


def test_help_lists_every_command(ticketgate: Run) -> None:
    ran = ticketgate("--help")

    assert ran.code == 0
    for name, (_, line) in COMMANDS.items():
        assert f"  {name} " in ran.out.decode()
        assert line in " ".join(ran.out.decode().split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(ticketgate: Run, name: str) -> None:
    ran = ticketgate(name, "--help")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: ticketgate {name} ".encode())


def test_an_unknown_command_is_bad_usage(ticketgate: Run) -> None:
    ran = ticketgate("unlock")

    assert ran.code == 2
    assert "No such command 'unlock'" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "create"),
        ("consume", "tickets"),
        ("produce", "tickets.jsonl"),
        ("worker", "--policy", str(SAMPLE_POLICY)),
    ],
)
def test_an_unreachable_broker_is_one_line_that_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.jsonl").write_text('{"id":"T-1","state":"x"}\n')
    monkeypatch.setenv("TICKETGATE_KAFKA", f"127.0.0.1:{free_port()}")
    monkeypatch.setenv("TICKETGATE_REDIS", f"redis://127.0.0.1:{free_port()}/0")

    ran = process(*arguments)

    assert (ran.code, ran.out) == (4, b"")
    assert said(ran).startswith("ticketgate: TICKETGATE_")


@pytest.mark.kafka
def test_an_unreachable_redis_is_one_line_that_names_the_setting(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKETGATE_REDIS", f"redis://:s3cret@127.0.0.1:{free_port()}/0")

    ran = process("worker", "--kafka", kafka.bootstrap, "--policy", str(SAMPLE_POLICY))

    assert (ran.code, ran.out) == (4, b"")
    assert said(ran).startswith("ticketgate: TICKETGATE_REDIS: no Redis answers at 127.0.0.1:")
    assert "s3cret" not in ran.err


@pytest.mark.parametrize(("role", "is_refused"), [("effects", True), ("propose", False)])
def test_a_secret_that_is_not_set_is_one_line_to_the_role_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, is_refused: bool
) -> None:
    funnel = tmp_path / "funnel.toml"
    given = SUPPORT_FUNNEL.read_text(encoding="utf-8")
    desk = '[providers.desk]\nadapter = "redis"\nurl'
    assert desk in given
    funnel.write_text(given.replace(f'{desk} = "redis://127.0.0.1:6379/0"', f'{desk}_env = "NOWHERE_SET"'))
    for beside in ("support.jsonl", "support.undo.md"):  # what shows that a tool may act by itself
        (tmp_path / beside).write_bytes((SUPPORT_FUNNEL.parent / beside).read_bytes())
    monkeypatch.setenv("TICKETGATE_KAFKA", f"127.0.0.1:{free_port()}")

    ran = process("worker", "--role", role, "--funnel", str(funnel))

    refusal = (
        f"ticketgate: {funnel}: providers.desk: the environment variable NOWHERE_SET is not set to one line"
    )
    assert said(ran).startswith(refusal if is_refused else "ticketgate: TICKETGATE_KAFKA: no broker")


def test_an_unreadable_file_to_produce_is_one_line(ticketgate: Run, tmp_path: Path) -> None:
    ran = ticketgate("produce", tmp_path / "nowhere.jsonl")

    assert ran.code == 2
    assert ran.err.startswith(f"ticketgate: cannot read {tmp_path / 'nowhere.jsonl'}: No such file")


def test_a_reader_that_goes_away_ends_a_command_quietly() -> None:
    with subprocess.Popen(command("settings"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
        assert it.stdout is not None
        assert it.stderr is not None
        it.stdout.close()
        said = it.stderr.read().decode()

    assert it.returncode == 0
    assert "BrokenPipe" not in said


def test_data_is_an_object_a_line_and_nothing_else(ticketgate: Run) -> None:
    ran = ticketgate("settings", "--json")

    assert all(isinstance(line, dict) for line in ran.lines)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check", "no-such-file.json", "--policy", str(SAMPLE_POLICY), "--json"), 2),
        (("consume", "--until", "never", "tickets", "--json"), 2),
        (("topics", "create", "--json", "--partitions", "many"), 2),
        (("audit", "--json"), 4),
    ],
)
def test_an_error_is_data_too_where_data_was_asked_for(
    ticketgate: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int
) -> None:
    monkeypatch.setenv("TICKETGATE_KAFKA", f"127.0.0.1:{free_port()}")

    ran = ticketgate(*arguments)

    assert ran.code == code
    (told,) = ran.lines
    assert told["exit_code"] == code
    assert " ".join(told["error"].split()) in " ".join(ran.err.split())
