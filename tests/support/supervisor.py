"""What systemd or Kubernetes does for a worker: starts it again each time it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from .deployment import Deployment, Worker


def supervise(
    start: Callable[[], Worker], gate: Deployment, *, until: Callable[[], bool], timeout_s: float = 150
) -> list[int]:
    """Run a worker, and another each time it ends, until a condition holds; how each ended. The last one lives."""
    ends: list[int] = []
    worker = start()
    deadline = time.monotonic() + timeout_s
    while not until():
        if worker.process.poll() is not None:
            ends.append(worker.process.returncode)
            worker = start()
        if time.monotonic() > deadline:
            logs = "\n".join(each.log()[-2000:] for each in gate.workers[-4:])
            raise AssertionError(f"not within {timeout_s:g} s; workers ended with {ends}\n{logs}")
        time.sleep(0.1)
    return ends
