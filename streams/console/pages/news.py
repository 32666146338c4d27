"""News, as server-sent events: `GET /news`. A page that is open is told that something has changed, and what is new.

Promise: a page is told of what it shows alone; nothing on it moves by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.desk.view_reader import ViewNotThere
from ticketgate.streams.console.pages.telling import page
from ticketgate.streams.console.shown.filters import Filter, read_filter
from ticketgate.streams.operations.review.view import View

# A proxy gives a connection up that says nothing for a minute.
BEAT_S = 15.0
# News come in bursts; a page need not know of each.
PAUSE_S = 0.3
# By which a closed page is noticed: nothing tells a handler.
LOOK_EVERY_S = 0.25
MOST_TOLD = 100
MOST_ROWS = 60


@page
async def tell_news(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Goes on until the page is closed. The query is the list's own, with `since`, the number of its newest row, and
    `place`, once for each row that it shows."""
    del user
    listed = read_filter(request.query)
    since = request.query.get("since", "")
    places = request.query.getall("place", [])[:MOST_ROWS]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    response.enable_compression(web.ContentCoding.identity)
    await response.prepare(request)
    with contextlib.suppress(ConnectionResetError):
        number = int(since) if since.isdecimal() else None
        await _go_on(request, response, desk, lambda: _about(desk, listed, number, places))
    return response


async def _go_on(
    request: web.Request,
    response: web.StreamResponse,
    desk: ConsoleDesk,
    about: Callable[[], Awaitable[dict[str, object]]],
) -> None:
    """Until the page is closed. Who goes from page to page quickly must not have the streams of those before left over,
    for a session has few."""
    seen, told, quiet_s = -1, b"", 0.0
    while request.transport is not None and not request.transport.is_closing():
        revision = await desk.news.wait(seen, LOOK_EVERY_S)
        quiet_s += LOOK_EVERY_S
        if revision == seen:
            if quiet_s >= BEAT_S:
                await response.write(b": still here\n\n")
                quiet_s = 0.0
            continue
        seen = revision
        if (message := orjson.dumps(await about())) != told:
            await response.write(b"event: news\ndata: " + message + b"\n\n")
            told, quiet_s = message, 0.0
        await asyncio.sleep(PAUSE_S)


async def _about(
    desk: ConsoleDesk, listed: Filter, since: int | None, places: list[str]
) -> dict[str, object]:
    now = now_ms()

    def ask(view: View) -> tuple[int, list[str]]:
        new = (
            0
            if since is None
            else len(view.page(listed.wanted(now), now_ms=now, after=since, most=MOST_TOLD))
        )
        return new, view.gone(places)

    try:
        new, gone = await desk.view.ask(ask)
    except ViewNotThere:
        new, gone = 0, []
    return {
        "new": new,
        "is_more": new == MOST_TOLD,
        "gone": gone,
        # Presses have come further, or what is deferred: a page asks for its strip again.
        "revision": desk.news.revision,
    }
