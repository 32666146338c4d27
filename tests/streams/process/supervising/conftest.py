"""A supervisor over processes that are shaped like faults."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.member import Membership
from ticketgate.streams.process.supervising.backoff import Backoff
from ticketgate.streams.process.supervising.child import Child, environment_of_children
from ticketgate.streams.process.supervising.keeper import Keeper
from ticketgate.streams.process.supervising.supervisor import Supervisor

FAKE = Path(__file__).with_name("fake_member.py")
PATIENCE_S = 60.0


async def until(condition: Callable[[], object], *, what: str) -> None:
    """Wait for a condition; fails with what was waited for."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
        await asyncio.sleep(0.01)


@dataclass
class Held:
    """A supervisor that runs. kinds: of its places' processes, which a test may change between two starts."""

    kinds: list[str]
    marks: Path
    supervisor: Supervisor
    keepers: list[Keeper] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    running: asyncio.Task[int] | None = None

    def begin(self) -> None:
        """Start the processes."""
        self.running = asyncio.create_task(self.supervisor.run(self.keepers))

    async def code(self) -> int:
        """The supervisor's exit code, once it has ended."""
        assert self.running is not None
        async with asyncio.timeout(PATIENCE_S):
            return await self.running

    def pid(self, place: int) -> int | None:
        """The process of a place, once it listens."""
        pid = self.keepers[place].pid
        return pid if pid is not None and (self.marks / f"{pid}.listens").exists() else None

    async def listening(self, place: int) -> int:
        """As `pid`, waited for."""
        await until(lambda: self.pid(place), what=f"process {place} listens")
        pid = self.pid(place)
        assert pid is not None
        return pid

    @property
    def drained(self) -> set[int]:
        """Processes that drained."""
        return {int(mark.stem) for mark in self.marks.glob("*.drained")}


NewHeld = Callable[..., Held]


@pytest.fixture
async def hold(tmp_path: Path) -> AsyncIterator[NewHeld]:
    """Makes supervisors; `hold("serves", "dies", drain_s=…)`."""
    made: list[Held] = []

    def new(*kinds: str, drain_s: float = PATIENCE_S, first_s: float = 0.01) -> Held:
        held = Held([*kinds], tmp_path, Supervisor(drain_s=drain_s, hurry_s=0.2))
        made.append(held)

        def start(place: int) -> Callable[[], Awaitable[Child]]:
            told = Membership(
                f"worker {place + 1}", Settings.model_validate({}), tmp_path / f"{place}.sock", 5.0
            )
            return lambda: Child.start(
                [sys.executable, "-S", str(FAKE), held.kinds[place], str(tmp_path)],
                told,
                environment=environment_of_children({}, threads=1),
                say=held.lines.append,
            )

        for place in range(len(kinds)):
            backoff = Backoff(first_s=first_s, most_s=first_s, between=lambda _, bound: bound)
            held.keepers.append(
                Keeper(
                    f"worker {place + 1}", start=start(place), ended=held.supervisor.ended, backoff=backoff
                )
            )
        return held

    yield new
    for held in made:
        for keeper in held.keepers:
            keeper.close()
            keeper.kill()
        if held.running is not None:
            held.supervisor._stop.set()
            await asyncio.wait([held.running])
