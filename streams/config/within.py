"""A time limit that holds also for what swallows its cancellation, or raises one of its own.

`asyncio.timeout` cancels, and then waits. aiokafka's consumer awaits tasks that take a cancellation for their own end,
and goes on; or it awaits one that it cancelled itself, and what it raises then passes for the caller's own: a worker
that lost its broker at the wrong moment never tried to join again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class CancelledWithin(Exception):
    """The work was cancelled, and not by who waits for it."""


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns or raises, or TimeoutError after so long. It is then cancelled, and nobody waits for it.

    A cancellation that comes from inside is `CancelledWithin`.
    """
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            # Whatever it comes to is nobody's concern, asyncio's neither.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    if not done:
        raise TimeoutError(f"not done in {seconds:g} s")
    if task.cancelled():
        raise CancelledWithin
    return task.result()
