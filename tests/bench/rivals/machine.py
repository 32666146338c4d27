"""Broker and Redis on one core, the measured processor on another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_core(number: int) -> Iterator[None]:
    """What is started meanwhile stays on that core, counted among those that this process may use. Where there is but
    one, or the system cannot, nothing is pinned."""
    if not can_pin():
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(_CORES)[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def can_pin() -> bool:
    """Whether there are cores to tell apart."""
    return len(_CORES) > 1


_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else frozenset[int]()
