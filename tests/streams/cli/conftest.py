"""The command line in this process, or in one of its own where pipes matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from ticketgate.streams.cli import main
from ticketgate.streams.parts.kafka import Kafka


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own environment has no settings."""
    for name in os.environ:
        if name.startswith("TICKETGATE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def ticketgate(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run a command in this process."""

    def run(*arguments: str | os.PathLike[str]) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([os.fspath(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, out, err.decode())

    return run


def command(*arguments: str) -> Sequence[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-c", "from ticketgate.streams.cli import main; main()", *arguments]


def process(*arguments: str, given: bytes = b"") -> Ran:
    """Run a command as a process of its own, with this on its standard input."""
    ran = subprocess.run(command(*arguments), input=given, capture_output=True, timeout=120, check=False)
    return Ran(ran.returncode, ran.stdout, ran.stderr.decode())


@pytest.fixture
def broker(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """A broker that the settings name, and topics that no other test has."""
    monkeypatch.setenv("TICKETGATE_KAFKA", kafka.bootstrap)
    suffix = uuid4().hex[:8]
    outputs = ("dispatch", "review", "repairs", "receipts", "settled", "dead-letter")
    for name in ("tickets", "proposals", "settlements", *outputs, "policies"):
        monkeypatch.setenv(f"TICKETGATE_TOPIC_{name.replace('-', '_').upper()}", f"{name}-{suffix}")
    monkeypatch.setenv("TICKETGATE_PARTITIONS", "3")
    return kafka


@pytest.fixture
def tickets(broker: Kafka, ticketgate: Run) -> str:
    """An empty topic of tickets on the broker, with its outputs; its name."""
    assert ticketgate("topics", "create").code == 0
    return os.environ["TICKETGATE_TOPIC_TICKETS"]
