"""Signals for a command that has something to say when it is interrupted.

Promise: the first SIGINT or SIGTERM stops the work at a point where it can be told what was done, the second at once;
either way `Interrupted` comes out, and no signal is lost between two phases.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What is under way is acknowledged within milliseconds by a broker that is there.
GRACE_S = 3.0


class Interrupted(BaseException):
    """A person or a supervisor wants the command to end; exit code 128 and the signal's number, as shells have it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` wherever a signal finds the block."""
    before = {each: signal.signal(each, _raise) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def run_until_signal(work: Callable[[asyncio.Event], Coroutine[None, None, None]]) -> None:
    """Run `work` in a loop of its own. Its event is set by the first signal; GRACE_S later, or by the second signal, it
    is cancelled. Raises `Interrupted` if there was a signal, else what `work` raises."""
    asyncio.run(_run(work))
    # The loop has put Python's own handlers in the place of those that it found.
    for each in SIGNALS:
        signal.signal(each, _raise)


async def _run(work: Callable[[asyncio.Event], Coroutine[None, None, None]]) -> None:
    loop, stop, seen = asyncio.get_running_loop(), asyncio.Event(), list[int]()
    task = loop.create_task(work(stop))

    def on_signal(number: int) -> None:
        if seen:
            task.cancel()
            return
        seen.append(number)
        stop.set()
        loop.call_later(GRACE_S, task.cancel)

    for each in SIGNALS:
        loop.add_signal_handler(each, on_signal, each)
    await asyncio.wait((task,))
    if task.cancelled() or (seen and task.exception() is None):
        raise Interrupted(seen[0] if seen else signal.SIGINT)
    task.result()
