"""What waits, told as metrics by the console, since it keeps a view."""

from __future__ import annotations

import asyncio
from functools import partial

from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.desk.view_reader import ViewNotThere
from ticketgate.streams.operations.review.review_metrics import ReviewMetrics
from ticketgate.streams.operations.review.view import View

# Ages grow without news, and a scrape comes every 15 s as a rule.
EVERY_S = 10.0
# News come in bursts; a graph need not know of each.
PAUSE_S = 1.0


async def keep_counting(desk: ConsoleDesk, metrics: ReviewMetrics) -> None:
    """Until cancelled: after news, and from time to time."""
    seen = -1
    while True:
        now = now_ms()
        try:
            metrics.tell(await desk.view.ask(partial(View.numbers, now_ms=now)), now_ms=now)
        except ViewNotThere:
            metrics.forget()
        await asyncio.sleep(PAUSE_S)
        seen = await desk.news.wait(seen, EVERY_S)
