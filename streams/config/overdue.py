"""What is under way in this process, and by when each step of it must be over.

A step that waits for something with a time limit ends by that. One that is overdue by this clock hangs where no limit
reaches it: a task that nobody wakes, a lock that nobody releases. Nothing heals that but a new process, and whoever
takes the partitions over finds all as after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Step:
    """One thing under way. `limit_s` counts from its start, or from its last sign of life."""

    what: str
    limit_s: float
    since: float

    @property
    def deadline(self) -> float:
        """By when it must be over."""
        return self.since + self.limit_s


class Steps:
    """All steps under way in a process. `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._under_way: set[Step] = set()

    @contextmanager
    def step(self, what: str, *, limit_s: float) -> Iterator[Step]:
        """Be in a step. Its limit must be longer than all time limits of what is done in it together."""
        step = Step(what, limit_s, self._now())
        self._under_way.add(step)
        try:
            yield step
        finally:
            self._under_way.discard(step)

    def renew(self, *steps: Step) -> None:
        """Count these from now: what they wait for goes on."""
        for step in steps:
            step.since = self._now()

    def forgive(self, seconds: float) -> None:
        """The process stood still for so long (SIGSTOP, a busy machine): no step could go on meanwhile."""
        for step in self._under_way:
            step.since += seconds

    def overdue(self) -> Step | None:
        """The step that is overdue for longest, if any."""
        late = [step for step in self._under_way if step.deadline < self._now()]
        return min(late, key=lambda step: step.deadline, default=None)
