"""A process beside the worker that ends it when its event loop stands still.

Code that never gives the interpreter's lock back stops every thread of the worker, and with them whatever watches from
inside. A timer in the process (`faulthandler.dump_traceback_later`) would reach such code, but its time goes on while
the process is stopped: a worker woken after minutes would be ended for having slept. So this one counts outside, and
only seconds in which the worker could run. At the limit it sends SIGABRT, at which faulthandler writes what each thread
was at, and the process ends by that signal.

Run as a script it is the guard, and loads nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

log = logging.getLogger(__name__)

# Nothing that the loop does between two beats may take so long: a batch of the largest tickets is decoded in seconds,
# and models compute in a thread.
LOOP_LIMIT_S = 60
TICK_S = 1.0
# Writing all tracebacks takes a moment; what then still lives is killed.
ABORT_S = 5.0


class LoopGuard:
    """The guard of this process' loop. `beat` must be called every few seconds."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start to count. Without a process to spare, the worker goes on unguarded, and says so."""
        faulthandler.enable()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this file, by this interpreter
                [sys.executable, "-I", "-S", __file__, str(os.getpid()), str(LOOP_LIMIT_S)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                # Not the terminal's signals: it ends with the worker, and not before.
                start_new_session=True,
            )
        except OSError as err:
            log.warning("no guard of the event loop: %s; a worker that hangs has to be ended by hand", err)
            return
        os.set_blocking(self._stdin, False)

    @property
    def _stdin(self) -> int:
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("the guard was not started")
        return self._process.stdin.fileno()

    def beat(self) -> None:
        """The loop goes round. A guard that somebody ended is replaced."""
        if self._process is None:
            return
        try:
            os.write(self._stdin, b".")
        except BlockingIOError:
            pass  # it is not scheduled either, and will find many beats
        except BrokenPipeError:
            log.warning("the guard of the event loop was ended; starting another")
            self.stop()
            self.start()

    def stop(self) -> None:
        """Count no more."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ABORT_S)


def guard(worker: int, limit_s: int) -> None:
    """Wait for beats on stdin until it closes; end `worker` after `limit_s` seconds without one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    silent_s = 0.0
    while silent_s < limit_s:
        if select.select([0], [], [], TICK_S)[0]:
            if not os.read(0, 65_536):
                return
            silent_s = 0.0
            time.sleep(TICK_S / 10)
        elif is_stopped(worker):
            silent_s = 0.0
        else:
            # Counted by ticks of its own and not by the clock: who stops the worker may stop its guard as well.
            silent_s += TICK_S
    sys.stderr.write(
        f"ticketgate: the event loop of process {worker} stood still for {limit_s} s; ending it\n"
    )
    sys.stderr.flush()
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGABRT)
        if not select.select([0], [], [], ABORT_S)[0] or os.read(0, 65_536):
            os.kill(worker, signal.SIGKILL)


def is_stopped(process: int) -> bool:
    """Whether somebody stopped it (SIGSTOP, a debugger); False where that cannot be told."""
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
        # The state follows the command, which stands in parentheses and may hold some of its own.
        return stat.rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


if __name__ == "__main__":
    guard(int(sys.argv[1]), int(sys.argv[2]))
