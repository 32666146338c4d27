"""The watch over a worker's process: its event loop goes round, and no step in it is overdue.

Promise: what hangs ends the process, with what each thread and task was at in the log; whoever takes the partitions
over finds all as after a crash. A process that stood still from outside (SIGSTOP) goes on where it was.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from ticketgate.streams.config.overdue import Step, Steps
from ticketgate.streams.config.repeated_logs import limit_repeats, tell_repeats
from ticketgate.streams.process.loop_guard import LoopGuard

log = logging.getLogger(__name__)

BEAT_S = 1.0
# A loop on a busy machine comes late; later than this, nothing could have gone on.
LATE_S = 5.0
EXIT_OVERDUE = 75
# Writing a last line may hang too, if the thread that hangs was writing one.
LAST_WORDS_S = 5.0


class ProcessWatch:
    """Watches from `run`'s start until it is cancelled."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._guard = LoopGuard()

    async def run(self) -> NoReturn:
        """Look every second."""
        # Here, and not where a command sets logging up: Faust's own command sets up its own.
        limit_repeats()
        self._guard.start()
        try:
            while True:
                due_at = time.monotonic() + BEAT_S
                await asyncio.sleep(BEAT_S)
                self._guard.beat()
                late_s = time.monotonic() - due_at
                if late_s > LATE_S:
                    self._steps.forgive(late_s)
                tell_repeats()
                if (step := self._steps.overdue()) is not None:
                    end_overdue(step)
        finally:
            self._guard.stop()


def end_overdue(step: Step) -> NoReturn:
    """Write down what hangs, and end."""
    log.error(
        "%s should have been over in %g s and hangs: ending, for a successor to take over",
        step.what,
        step.limit_s,
    )
    for task in asyncio.all_tasks():
        sys.stderr.write(f"Task {task.get_name()} (outermost call first):\n" + "".join(_awaiting(task)))
    sys.stderr.flush()
    faulthandler.dump_traceback(all_threads=True)
    end_now(EXIT_OVERDUE)


def end_with(task: asyncio.Task[None]) -> None:
    """End because this task did, which never should: the worker would go on without what it does, and be ready."""
    raised = None if task.cancelled() else task.exception()
    log.error("%s ended, which it never should: ending, for a successor", task.get_name(), exc_info=raised)
    end_now(EXIT_OVERDUE)


def _awaiting(task: asyncio.Task[Any]) -> Iterator[str]:
    """Where a suspended task is: each coroutine that awaits the next, where `Task.print_stack` has the first alone."""
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno} in {frame.f_code.co_qualname}\n'
        awaited = awaited.cr_await


def end_within(seconds: float) -> None:
    """End the process after so long, whatever holds it up by then: a scorer's thread that does not come back, a client
    that says good-bye to nobody. What was not committed is a successor's."""
    timer = threading.Timer(seconds, _end_late, [seconds])
    timer.daemon = True
    timer.start()
    # For code that gives the interpreter's lock back to no thread.
    faulthandler.dump_traceback_later(seconds + LAST_WORDS_S, exit=True)


def _end_late(seconds: float) -> None:
    log.warning(
        "still not ended after %g s: ending at once; what was not committed is decided again by whoever comes next",
        seconds,
    )
    end_now(0)


def end_now(code: int) -> NoReturn:
    """Leave the process without waiting for anything but the log."""
    tell_repeats(at_once=True)
    logging.shutdown()
    os._exit(code)
