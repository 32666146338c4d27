"""Kill one process and remove its folders once the starter is gone.

Promise: when the starter dies, even by SIGKILL, its part dies too and its temporary data go.
Relies on: only the starter holds the writing end of this script's standard input; its death ends the file.

A script, run by path with `python -I -S`. Why not PR_SET_PDEATHSIG: that fires when the *thread* that forked
ends, so a part started from a pool thread would die in the middle of a run; it needs a preexec hook, which is
unsafe in a process with threads (onnxruntime has them); and only Linux knows it. Why not atexit and signal
handlers: a starter that is killed, or crashes in C, runs neither.

Input: a line with the process id; then one byte, if the starter has stopped the part itself.
"""

import contextlib
import os
import select
import shutil
import signal
import sys

# A killed broker writes for some milliseconds more; folders removed before that would come back.
DEATH_TIMEOUT_S = 5.0


def main() -> None:
    """Wait for the release or for the starter's death, and act on the latter."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    watched = _watch(int(line)) if line else None
    if sys.stdin.buffer.read(1):
        return
    if watched is not None:
        _kill(*watched)
    for folder in sys.argv[1:]:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(pid: int) -> tuple[int, int | None] | None:
    """The id and, on Linux, a descriptor that stays bound to this process if the id is used again."""
    try:
        return pid, os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except (AttributeError, OSError):  # macOS, or a kernel older than 5.3
        return pid, None


def _kill(pid: int, descriptor: int | None) -> None:
    with contextlib.suppress(ProcessLookupError):
        if descriptor is None:
            os.kill(pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            select.select([descriptor], [], [], DEATH_TIMEOUT_S)


if __name__ == "__main__":
    main()
