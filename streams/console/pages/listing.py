"""The list of what waits: `GET /`.

Promise: the oldest first, whose end comes first. Rows stay where they are until the person asks for others; what is
new, or gone, is announced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.pages.telling import about_desk, page
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.shown.filters import FILTERED, Filter, read_filter
from ticketgate.streams.console.shown.list_page import PAGE_ROWS, Facet, ListPage, list_url, row_of
from ticketgate.streams.operations.review.moments import age
from ticketgate.streams.operations.review.rows import Case, Count, Kind, State
from ticketgate.streams.operations.review.view import View

# Filters that are offered, of each kind.
FACETS = (("rule", 6), ("label", 6), ("stage", 4))
# Where many are deferred, so many rows are read for one page at most.
MOST_READ = 1_000


@dataclass(frozen=True, slots=True)
class Found:
    """What the view says of one list."""

    rows: Sequence[Case]
    count: Count
    numbers: dict[str, int]
    facets: Sequence[tuple[str, str, int]]
    newest: int
    next_after: int | None
    is_full: bool


@page
async def show_list(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """What waits."""
    listed = read_filter(request.query)
    after = int(request.query.get("after", "")) if request.query.get("after", "").isdecimal() else 0
    shows_deferred = request.query.get("deferred") == "1"
    now = now_ms()
    deferred_places = set() if shows_deferred else desk.notes.deferred_places(now_ms=now)
    found = await desk.view.ask(lambda view: _found(view, listed, after, now, deferred_places))
    shown = _shown(
        desk,
        found,
        listed,
        after=after,
        now=now,
        hidden=len(deferred_places) if listed.state in FILTERED else 0,
        shows_deferred=shows_deferred,
        subject=user.subject,
    )
    texts = [each.key for each in found.rows if each.says]
    if texts:
        desk.log_texts(user.subject, "list", texts)
    return render(request, "list.html", page=shown, desk=about_desk(request, desk))


def _found(view: View, listed: Filter, after: int, now: int, without: set[str]) -> Found:
    wanted = listed.wanted(now)
    rows: list[Case] = []
    read, following = 0, after
    while True:
        part = view.page_from(wanted, now_ms=now, after=following, most=PAGE_ROWS)
        rows += [each for each in part.rows if each.place not in without]
        read += len(part.rows)
        more = part.next_after
        if more is None or not part.is_full or len(rows) >= PAGE_ROWS or read >= MOST_READ:
            break
        following = more
    if len(rows) > PAGE_ROWS:
        rows = rows[:PAGE_ROWS]
        more = rows[-1].id
    facets: list[tuple[str, str, int]] = []
    if listed.state is State.WAITING and listed.kind in (Kind.DECISION, Kind.CASE):
        for name, most in FACETS:
            facets += [(name, value, rows) for value, rows in view.commonest(listed.kind, name, most=most)]
    numbers = view.numbers(now_ms=now)
    return Found(rows, view.count(wanted, now_ms=now), numbers, facets, view.newest_id(), more, part.is_full)


def _shown(
    desk: ConsoleDesk,
    found: Found,
    listed: Filter,
    *,
    after: int,
    now: int,
    hidden: int,
    shows_deferred: bool,
    subject: str,
) -> ListPage:
    places = [each.place for each in found.rows]
    presses, lookers = desk.notes.opened(places), desk.notes.lookers(places, now_ms=now)
    deferred = desk.notes.deferred(places, now_ms=now)
    given = [(name, value, list_url(listed.without(name, value))) for name, value in listed.given]
    has = {*listed.given}
    oldest = found.numbers.get("oldest_ms", 0)
    return ListPage(
        filter=listed,
        rows=tuple(
            row_of(
                each,
                listed=listed,
                now_ms=now,
                press=presses.get(each.place),
                deferred=deferred.get(each.place),
                lookers=[desk.name_of(by) for by in lookers.get(each.place, []) if by != subject],
            )
            for each in found.rows
        ),
        count=found.count,
        numbers=found.numbers,
        oldest=age(now - oldest) if oldest else "",
        given=tuple(given),
        facets=tuple(
            Facet(name, value, rows, list_url(listed.with_(name, value)))
            for name, value, rows in found.facets
            if (name, value) not in has
        ),
        newest=found.newest,
        after=after,
        next_url=None
        if found.next_after is None
        else list_url(listed, after=found.next_after, deferred=shows_deferred),
        is_full=found.is_full,
        hidden=hidden,
        shows_deferred=shows_deferred,
    )
