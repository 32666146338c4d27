"""Rows of the view by what an address names, and the ticket that comes next.

Promise: an address names a ticket's newest decision, or with `at` the very record; a name that several tenants have is
refused.
"""

from __future__ import annotations

from aiohttp import web
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.shown.filters import Filter
from ticketgate.streams.console.shown.list_page import list_url, ticket_url
from ticketgate.streams.console.words import say
from ticketgate.streams.operations.review.rows import Case, Kind
from ticketgate.streams.operations.review.view import View

# Of those that come next, so many are looked through for one that nobody has dealt with.
MOST_LOOKED_THROUGH = 250


async def case_in(request: web.Request, desk: ConsoleDesk) -> Case:
    """The row that the address names. Raises PageRefusal and ViewNotThere."""
    name = request.match_info["key"]
    return await named_case(desk, name, at=request.query.get("at"))


async def named_case(desk: ConsoleDesk, name: str, *, at: str | None = None) -> Case:
    """The row of a ticket by its key or id. Raises PageRefusal and ViewNotThere."""

    def ask(view: View) -> list[Case]:
        return view.find(name, now_ms=now_ms())

    found = await desk.view.ask(ask)
    if at is not None:
        found = [each for each in found if each.place == at]
    if not found:
        raise PageRefusal(404, say("refused.no_ticket"), next_step=say("refused.no_ticket_next"))
    decisions = [each for each in found if each.kind is Kind.DECISION] or found
    if len({each.key for each in decisions}) > 1:
        keys = ", ".join(sorted({each.key for each in decisions})[:8])
        raise PageRefusal(409, say("refused.several"), next_step=say("refused.several_next", keys=keys))
    return decisions[0]


async def next_url(desk: ConsoleDesk, case: Case, listed: Filter) -> str:
    """The address of the next ticket of a list that nobody presses or has deferred; else of the list."""
    now = now_ms()

    def ask(view: View) -> list[Case]:
        wanted = listed.wanted(now)
        after = view.page(wanted, now_ms=now, after=case.id, most=MOST_LOOKED_THROUGH)
        return after or [
            each for each in view.page(wanted, now_ms=now, most=MOST_LOOKED_THROUGH) if each.id != case.id
        ]

    found = await desk.view.ask(ask)
    places = [each.place for each in found]
    taken = {*desk.notes.opened(places), *desk.notes.deferred(places, now_ms=now)}
    for each in found:
        if each.place not in taken:
            return ticket_url(each, listed)
    return list_url(listed)
