"""Effects whose outcome is open: `GET /effects`, and settling one by a person's word, by the functions of the commands.

Promise: nothing is sent to a provider from here. A word names who gave it, and why.
"""

from __future__ import annotations

from aiohttp import web
from ticketgate.store.ledger.entries import SETTLED_AS
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk
from ticketgate.streams.console.pages.telling import about_desk, page
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.shown.case_page import effect_line, unreadable_line
from ticketgate.streams.console.words import say
from ticketgate.streams.operations.open_effects import look, settle

MOST_LISTED = 200
MOST_REASON = 1_000


@page
async def show_effects(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """What is open, the oldest first."""
    del user
    _, held, unreadable, found = await look(desk.settings, read_back=False, is_all=False, limit=MOST_LISTED)
    lines = [effect_line(each) for each in held] + [unreadable_line(each) for each in unreadable]
    return render(
        request,
        "effects.html",
        effects=lines,
        count=found.count,
        settled=request.query.get("settled", ""),
        desk=about_desk(request, desk),
    )


@page
async def settle_effect(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Take a person's word for what became of an effect."""
    form = await request.post()
    key, state = str(form.get("key", "")), str(form.get("state", ""))
    reason = str(form.get("reason", "")).strip()[:MOST_REASON]
    if not key or state not in SETTLED_AS:
        raise PageRefusal(400, say("refused.form"), next_step=say("refused.form_next"))
    if not reason:
        raise PageRefusal(400, say("effects.no_reason"), next_step=say("effects.no_reason_next"))
    await settle(desk.settings, key, state, user.subject, reason)
    raise web.HTTPSeeOther("/effects?settled=1")
