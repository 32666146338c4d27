"""Presses: accept, reject, return, taken back; and what is noted beside them.

Promise: what is pressed is what was shown: the record by its hash, the policy and the effects by theirs. Otherwise
nothing is noted, and the page says what is different now.
"""

from __future__ import annotations

import re

from aiohttp import web
from multidict import MultiMapping
from ticketgate.agents.policy import Policy
from ticketgate.codecs.records.settlement import Action, effects_digest
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.desk.notes import Deferred
from ticketgate.streams.console.desk.presses import Pressed
from ticketgate.streams.console.pages.finding import case_in, next_url
from ticketgate.streams.console.pages.telling import about_desk, is_fragment, page
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.shown.filters import read_filter
from ticketgate.streams.console.shown.list_page import ticket_url
from ticketgate.streams.console.shown.presses_page import batches, is_news, shown_batch
from ticketgate.streams.console.words import say
from ticketgate.streams.operations.review.desk import Lying
from ticketgate.streams.operations.review.rows import Case, Kind, State
from yarl import URL

MOST_WHY = 4_000
MOST_PRESSES_SHOWN = 400
# What one may defer for, in hours.
DEFER_HOURS = {"1": 1, "24": 24, "72": 72, "168": 168}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@page
async def press(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Settle a ticket: noted, and the next one opens."""
    form, case = await request.post(), await case_in(request, desk)
    listed = read_filter(URL(f"/?{form_text(form, 'query')}").query)
    press_id = form_text(form, "id")
    if UUID.fullmatch(press_id) is None:
        raise PageRefusal(400, say("refused.form"), next_step=say("refused.form_next"))
    action = _action(form_text(form, "action"))
    if desk.notes.press(press_id) is None:
        _require_waiting(case)
        if (case.place, case.sha256) != (form_text(form, "place"), form_text(form, "sha256")):
            raise PageRefusal(409, say("refused.other_record"), next_step=say("refused.look_again"))
        lying = await desk.records.lying(case)
        pressed = await _pressed(desk, lying, action, form, press_id)
        if not desk.presses.press([pressed], by=user.subject, key=user.key, batch=press_id):
            raise PageRefusal(409, say("refused.pressed"), next_step=say("refused.look_again"))
        desk.notes.look_away(case.place, user.subject)
        desk.notes.take_up(case.place)
    raise web.HTTPSeeOther(await next_url(desk, case, listed))


async def _pressed(
    desk: ConsoleDesk, lying: Lying, action: Action, form: MultiMapping[object], press_id: str
) -> Pressed:
    why = form_text(form, "why").strip()
    if len(why) > MOST_WHY:
        raise PageRefusal(400, say("refused.why", most=MOST_WHY), next_step=say("refused.form_next"))
    if action is not Action.ACCEPT:
        return Pressed(id=press_id, lying=lying, action=action, why=why)
    policy = await desk.policies.now()
    if not isinstance(policy, Policy):
        raise PageRefusal(409, say("refused.policy"), next_step=policy.why)
    labels = frozenset(str(each) for each in form.getall("label", []))
    found = await desk.records.preview(lying, labels, policy)
    if found.reasons:
        raise PageRefusal(409, say("refused.not_accepted"), next_step="; ".join(found.reasons))
    if (policy.hash, effects_digest(found.effects)) != (
        form_text(form, "policy"),
        form_text(form, "effects"),
    ):
        raise PageRefusal(409, say("refused.other_effects"), next_step=say("refused.look_again"))
    return Pressed(
        id=press_id,
        lying=lying,
        action=action,
        labels=labels,
        policy=policy,
        effects=found.effects,
        why=why,
    )


@page
async def take_back(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Take a press back while it can be."""
    taken, too_late = desk.presses.take_back(request.match_info["batch"], by=user.subject)
    if is_fragment(request):
        return _presses(request, desk, user)
    if not taken:
        raise PageRefusal(
            409 if too_late else 404, say("refused.too_late"), next_step=say("refused.too_late_next")
        )
    raise web.HTTPSeeOther("/presses")


@page
async def show_presses(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """A person's presses: the strip at the end of every page, or a page of their own."""
    return _presses(request, desk, user)


def _presses(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    now = now_ms()
    found = desk.notes.last_by(user.subject, most=MOST_PRESSES_SHOWN)
    shown = [(shown_batch(each, now_ms=now), each[0].pressed_ms) for each in batches(found)]
    if is_fragment(request):
        news = [each for each, pressed_ms in shown if is_news(each, pressed_ms, now)]
        return render(request, "strip.html", presses=news, is_open=any(each.is_open for each in news))
    return render(
        request,
        "presses.html",
        presses=shown,
        is_open=any(each.is_open for each, _ in shown),
        desk=about_desk(request, desk),
    )


@page
async def defer(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Note that a ticket is to be looked at later, or that it is no longer."""
    form, case = await request.post(), await case_in(request, desk)
    listed = read_filter(URL(f"/?{form_text(form, 'query')}").query)
    if form_text(form, "hours") == "0":
        desk.notes.take_up(case.place)
        raise web.HTTPSeeOther(ticket_url(case, listed))
    hours = DEFER_HOURS.get(form_text(form, "hours"))
    if hours is None:
        raise PageRefusal(400, say("refused.form"), next_step=say("refused.form_next"))
    _require_waiting(case)
    why = form_text(form, "why").strip()[:MOST_WHY]
    until_ms = min(now_ms() + hours * 3_600_000, case.expires_ms)
    desk.notes.defer(Deferred(case.place, user.subject, why, until_ms))
    desk.notes.look_away(case.place, user.subject)
    desk.news.announce()
    raise web.HTTPSeeOther(await next_url(desk, case, listed))


def _require_waiting(case: Case) -> None:
    if case.kind is not Kind.DECISION:
        raise PageRefusal(409, say("refused.kind"), next_step=say("refused.kind_next"))
    if case.state is not State.WAITING:
        raise PageRefusal(409, say(f"refused.state_{case.state}"), next_step=say("refused.look_again"))


def _action(text: str) -> Action:
    try:
        return Action(text)
    except ValueError as err:
        raise PageRefusal(400, say("refused.form"), next_step=say("refused.form_next")) from err


def form_text(form: MultiMapping[object], name: str) -> str:
    """A field of a form; empty where it is not there, or is a file."""
    found = form.get(name, "")
    return found if isinstance(found, str) else ""
