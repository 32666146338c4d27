"""`ticketgate worker` that kills or stops itself at a step of the effects' protocol, when the test arms it.

STEP_FILE names a file; while it holds `{"at": "after ledger.begin_send", "nth": 1, "signal": 9}`, the process sends
itself that signal at the nth such call since it was armed. The file is taken away first, so a successor goes on.
Pauses that are there for real providers are shortened.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from aiokafka import AIOKafkaProducer
from ticketgate.agents.effects import executor, reconcile
from ticketgate.agents.effects.adapters.http import HttpPort
from ticketgate.agents.funnel.lookups.http import HttpWorld
from ticketgate.store.ledger import ledger
from ticketgate.streams.cli import main

T = TypeVar("T")
PAUSE_S = 0.2

STEPS: dict[str, tuple[type, str]] = {
    "lookup.world": (HttpWorld, "world"),
    "ledger.prepare": (ledger.Ledger, "prepare"),
    "ledger.begin_send": (ledger.Ledger, "begin_send"),
    "ledger.settle": (ledger.Ledger, "settle"),
    "ledger.take_due": (ledger.Ledger, "take_due"),
    "ledger.tell": (ledger.Ledger, "tell"),
    "port.execute": (HttpPort, "execute"),
    "port.read_back": (HttpPort, "read_back"),
    "kafka.commit": (AIOKafkaProducer, "commit_transaction"),
}


class Armed:
    """What the file says, and how often the armed step was reached since it says so."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._written = ""
        self._reached = 0

    def reach(self, step: str) -> None:
        """A step is reached: count it, and strike if it is the one."""
        try:
            written = self._file.read_text()
        except FileNotFoundError:
            return
        if written != self._written:
            self._written, self._reached = written, 0
        armed = json.loads(written)
        if armed["at"] != step:
            return
        self._reached += 1
        if self._reached == armed["nth"]:
            self._file.unlink()
            os.kill(os.getpid(), armed["signal"])


def stepping(armed: Armed, name: str, call: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """The call with a step before and a step after it. Taking nothing is no step."""

    @functools.wraps(call)
    async def stepped(*arguments: Any, **named: Any) -> T:
        armed.reach(f"before {name}")
        result = await call(*arguments, **named)
        if name != "ledger.take_due" or result:
            armed.reach(f"after {name}")
        return result

    return stepped


def arm(armed: Armed) -> None:
    """Put the steps into the classes that the worker uses."""
    for name, (owner, method) in STEPS.items():
        setattr(owner, method, stepping(armed, name, getattr(owner, method)))
    begin = reconcile.Reconciler.__init__

    def begin_with_steps(self: reconcile.Reconciler, *arguments: Any, announce: Any, **named: Any) -> None:
        begin(self, *arguments, announce=stepping(armed, "announce", announce), **named)

    reconcile.Reconciler.__init__ = begin_with_steps  # type: ignore[method-assign]


def shorten_pauses() -> None:
    """What is waited for between two looks at an effect."""
    executor.__dict__["READ_BACK_FIRST_S"] = PAUSE_S
    executor.__dict__["READ_BACK_ABSENT_S"] = PAUSE_S
    ledger.__dict__["BACK_OFF_FIRST"] = timedelta(seconds=PAUSE_S)
    ledger.__dict__["BACK_OFF_MOST"] = timedelta(seconds=1)


if __name__ == "__main__":
    arm(Armed(Path(os.environ["STEP_FILE"])))
    shorten_pauses()
    main()
