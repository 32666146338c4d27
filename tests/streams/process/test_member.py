"""A process that hears its supervisor: orders, and its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.member import DRAIN, END_NOW, Membership, follow, read_membership

TIMEOUT_S = 30.0


class Line:
    """The line of one process, and what it did."""

    def __init__(self, folder: Path) -> None:
        self.read_end, self.write_end = os.pipe()
        socket = folder / "sockets" / "1.sock"
        socket.parent.mkdir()
        self.membership = Membership(
            "worker 1", Settings.model_validate({"web_keys": "secret"}), socket, 600.0
        )
        self.drains = 0
        self.drained = threading.Event()
        self.ended: list[int] = []
        self.end = threading.Event()

    def follow(self) -> threading.Thread:
        def drain() -> None:
            self.drains += 1
            self.drained.set()

        def end(code: int) -> None:
            self.ended.append(code)
            self.end.set()

        return follow(self.read_end, self.membership, drain=drain, end=end)

    def hang_up(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
        self.write_end = -1


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    """A line that is cut at the end."""
    line = Line(tmp_path)
    yield line
    line.membership = replace(line.membership, ends_within_s=0.0)
    line.hang_up()


def test_settings_come_as_they_were_with_their_secrets(line: Line) -> None:
    os.write(line.write_end, line.membership.to_bytes() + DRAIN)

    found = read_membership(line.read_end)

    assert found == line.membership
    assert found.settings.web_keys[0].get_secret_value() == "secret"
    assert os.read(line.read_end, 10) == DRAIN


@pytest.mark.parametrize("said", [b"", b"\0\0", (100).to_bytes(8, "big") + b"half"])
def test_who_is_started_by_no_supervisor_is_told_so(line: Line, said: bytes) -> None:
    os.write(line.write_end, said)
    line.hang_up()

    with pytest.raises(EOFError, match="started by no supervisor"):
        read_membership(line.read_end)


def test_an_order_to_drain_drains(line: Line) -> None:
    line.follow()

    os.write(line.write_end, DRAIN)

    assert line.drained.wait(TIMEOUT_S)
    assert not line.ended


def test_an_order_to_end_ends_at_once(line: Line) -> None:
    line.follow()

    os.write(line.write_end, DRAIN + END_NOW)

    assert line.end.wait(TIMEOUT_S)
    assert line.ended == [143]


def test_a_supervisor_that_is_gone_drains_and_takes_its_socket_along(line: Line) -> None:
    line.membership.socket.touch()
    line.follow()

    line.hang_up()

    assert line.drained.wait(TIMEOUT_S)
    assert not line.ended


def test_a_drain_that_does_not_end_is_ended(line: Line) -> None:
    line.membership = replace(line.membership, ends_within_s=0.05)
    line.membership.socket.touch()
    thread = line.follow()

    line.hang_up()

    thread.join(TIMEOUT_S)
    assert line.drains == 1
    assert line.ended == [143]
    assert not line.membership.socket.parent.exists()
