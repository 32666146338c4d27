"""Work that takes longer than a page may, asked for again and again by whoever waits for it."""

from __future__ import annotations

import asyncio

from ticketgate.streams.console.desk.jobs import Job, Jobs


class Reading:
    """Work that is over when it is let go on. begun: how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.goes_on = asyncio.Event()

    async def __call__(self, _: Job) -> int:
        self.begun += 1
        await self.goes_on.wait()
        return self.begun


async def ask(jobs: Jobs, reading: Reading, seconds: float) -> Job:
    """As a whole page does: what is read anew each time that it is asked for."""
    return await jobs.wait(jobs.begin("letters", "anna", work=reading, anew=True), seconds)


async def test_a_page_that_is_loaded_again_and_again_is_told_what_was_read() -> None:
    jobs, reading = Jobs(), Reading()
    waited_for = await ask(jobs, reading, 0)

    reading.goes_on.set()
    await waited_for.ended.wait()
    loaded_again = await ask(jobs, reading, 0)

    assert loaded_again is waited_for
    assert (loaded_again.result, reading.begun) == (1, 1)
    await jobs.close()


async def test_what_was_told_is_read_anew_for_the_next_page() -> None:
    jobs, reading = Jobs(), Reading()
    reading.goes_on.set()

    results = [(await ask(jobs, reading, 5)).result for _ in range(3)]

    assert results == [1, 2, 3]
    await jobs.close()
