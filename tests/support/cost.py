"""What reading something costs: the most memory that it holds at once, and how much work it does.

Memory is what Python allocates, by tracemalloc. Work is counted in lines of our own code and not in seconds, which
depend on what else the machine does.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

OWN = "/ticketgate/"


def peak_bytes(act: Callable[[], object]) -> int:
    """The most bytes that `act` holds at once beyond what was held before; run once before, so caches are filled."""
    act()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        act()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def lines_run(act: Callable[[], object]) -> int:
    """How many lines of ticketgate `act` runs."""
    count = 0

    def line(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, _: str, __: Any) -> Any:
        return line if OWN in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def allowed_bytes(size: int) -> int:
    """What something of `size` bytes may cost."""
    return 16 * size + 2**20
