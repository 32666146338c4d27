"""A time limit for what may not listen."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from ticketgate.streams.config.within import CancelledWithin, within


async def test_what_swallows_its_cancellation_is_left_behind() -> None:
    swallowed, let_go = asyncio.Event(), asyncio.Event()

    async def swallows() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        swallowed.set()
        await let_go.wait()

    with pytest.raises(TimeoutError):
        await within(0.01, swallows())

    await swallowed.wait()
    let_go.set()


async def test_what_it_comes_to_in_time_is_returned_or_raised() -> None:
    async def fails() -> None:
        raise ValueError("no")

    assert await within(5, asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="no"):
        await within(5, fails())


async def test_a_cancellation_from_inside_is_not_the_callers() -> None:
    async def awaits_what_it_cancelled() -> None:
        inner = asyncio.create_task(asyncio.sleep(60))
        inner.cancel()
        await inner

    with pytest.raises(CancelledWithin):
        await within(5, awaits_what_it_cancelled())


async def test_who_is_cancelled_while_waiting_cancels_the_work() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(within(60, work()))
    await begun.wait()

    task.cancel()

    with suppress(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5):
        await ended.wait()
