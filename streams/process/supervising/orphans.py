"""Orphans of a container's first process.

A worker that is killed leaves the guard of its event loop, which ends by itself; whoever is process 1 then has to fetch
how it ended, or it stays in the table of processes. Outside of containers init does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NoReturn

INTERVAL_S = 10.0
_FIRST_PROCESS = 1


async def reap_forever(ours: Callable[[], Collection[int | None]]) -> NoReturn:
    """Fetch how orphans ended, where this is process 1, until cancelled. ours: who is waited for elsewhere."""
    before: frozenset[int] = frozenset()
    while True:
        await asyncio.sleep(INTERVAL_S)
        if os.getpid() == _FIRST_PROCESS:
            before = reap_orphans(ours(), before)


def reap_orphans(ours: Collection[int | None], before: Collection[int]) -> frozenset[int]:
    """Fetch those of this process' children that were over at the look `before` and still are, but for `ours`.

    Returns those that are over now: one that was started this moment may be ours, and nobody knows it yet.
    """
    over: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        for pid in _children(thread):
            if pid in ours or not _is_over(pid):
                continue
            if pid in before:
                os.waitpid(pid, os.WNOHANG)
            else:
                over.add(pid)
    return frozenset(over)


def _children(thread: Path) -> list[int]:
    try:
        return [int(pid) for pid in (thread / "children").read_text().split()]
    except OSError:  # it has ended meanwhile, and another thread has them
        return []


def _is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False
