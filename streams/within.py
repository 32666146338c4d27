"""A time limit that holds also for what swallows its cancellation.

`asyncio.timeout` cancels, and then waits. aiokafka's consumer awaits tasks that take a cancellation for their own end,
and goes on: one that lost its broker at the wrong moment closed for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns or raises, or TimeoutError after so long. It is then cancelled, and nobody waits for it."""
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
    return task.result()
