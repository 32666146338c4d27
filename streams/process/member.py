"""One of several worker processes that a supervisor started: what it was told, and how it hears of its end.

Promise: the process drains when its supervisor says so and when its supervisor is gone, however that ended; after
that it lives no longer than a drain may take. What it is told lies in no file and no argument list.

Its standard input is the line to the supervisor: first `Membership`, then a byte for each order; its end says that the
supervisor is gone. Why not PR_SET_PDEATHSIG: only Linux knows it, it fires when the starting *thread* ends, and it
needs a hook between fork and exec. Why not signals: a service manager that ends a whole control group sends SIGTERM to
the supervisor and to its processes, and the supervisor's would be a second one, which ends a worker at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ticketgate.streams.config.settings import Settings

log = logging.getLogger(__name__)

DRAIN = b"d"
END_NOW = b"e"
# Of a `Membership` that is to come.
_SIZE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Membership:
    """What a supervisor tells one process. name: as logs and /readyz name it. socket: where its pages are asked for.
    ends_within_s: after its supervisor went, it has ended so soon."""

    name: str
    settings: Settings
    socket: Path
    ends_within_s: float

    def to_bytes(self) -> bytes:
        """As it is written to the process' standard input."""
        # Settings are a frozen model of plain values, which its own reading would not take back: durations, secrets.
        content = pickle.dumps(self)
        return len(content).to_bytes(_SIZE_BYTES, "big") + content


def read_membership(descriptor: int) -> Membership:
    """What the supervisor tells. Raises EOFError where there is none, and nothing will be told."""
    size = int.from_bytes(_exactly(descriptor, _SIZE_BYTES), "big")
    found = pickle.loads(_exactly(descriptor, size))  # noqa: S301 - written by who started this process
    if not isinstance(found, Membership):
        raise EOFError("started by no supervisor")
    return found


def _exactly(descriptor: int, size: int) -> bytes:
    content = b""
    while len(content) < size:
        if not (part := os.read(descriptor, min(size - len(content), 2**20))):
            raise EOFError("started by no supervisor")
        content += part
    return content


def follow(
    descriptor: int,
    membership: Membership,
    *,
    drain: Callable[[], None] | None = None,
    end: Callable[[int], None] = os._exit,
) -> threading.Thread:
    """Hear the supervisor from now on, in a thread. drain: begins the drain, by SIGTERM to this process if None."""
    # One that comes before a worker listens would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    begin = drain or (lambda: os.kill(os.getpid(), signal.SIGTERM))

    def listen() -> None:
        while order := os.read(descriptor, 1):
            if order == END_NOW:
                end(128 + signal.SIGTERM)
            elif order == DRAIN:
                begin()
        log.warning("the supervisor is gone; draining")
        begin()
        _remove(membership.socket)
        # A loop that does not go round hears no signal.
        time.sleep(membership.ends_within_s)
        end(128 + signal.SIGTERM)

    thread = threading.Thread(target=listen, name="supervisor's line", daemon=True)
    thread.start()
    return thread


def _remove(socket: Path) -> None:
    """Nobody asks here any more; the last one takes the folder along."""
    with contextlib.suppress(OSError):
        socket.unlink(missing_ok=True)
        socket.parent.rmdir()
