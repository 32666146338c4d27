"""One ticket: `GET /ticket/{key}`, and its parts that change while one looks at it.

Promise: who is shown a text is written down before. What a page shows of what would follow is bound by hashes to what
the press says.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from ticketgate.agents.policy import Policy
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.desk.policies import Unusable
from ticketgate.streams.console.pages.finding import case_in, next_url
from ticketgate.streams.console.pages.telling import about_desk, is_fragment, page
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.shown.answers import fields_of, labels_in
from ticketgate.streams.console.shown.documents import document_parts
from ticketgate.streams.console.shown.filters import Filter, read_filter
from ticketgate.streams.console.shown.foreign import foreign
from ticketgate.streams.console.shown.list_page import list_url, row_of
from ticketgate.streams.console.shown.presses_page import shown_press
from ticketgate.streams.console.shown.ticket_page import (
    Accepting,
    judged,
    outcome_of,
    suggested,
    text_of_ticket,
)
from ticketgate.streams.console.words import say
from ticketgate.streams.operations.review.desk import Lying
from ticketgate.streams.operations.review.rows import Case, Kind, State
from ticketgate.streams.operations.review.view import View

# A page that is open tells that it is, more often than this.
LOOKING_MS = 40_000
NEIGHBOURS = 5


@dataclass(frozen=True, slots=True)
class Around:
    """What else the view has about a ticket: others of its tenant, those derived from it, the one that it collides
    with."""

    same_tenant: list[Case]
    derived: list[Case]
    origin: Case | None
    settlements: list[dict[str, Any]]


@page
async def show_ticket(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """A ticket."""
    listed = read_filter(request.query)
    case = await case_in(request, desk)
    around = await desk.view.ask(lambda view: _around(view, case))
    desk.log_texts(user.subject, "ticket", [case.key])
    now = now_ms()
    desk.notes.look_at(case.place, user.subject, until_ms=now + LOOKING_MS)
    is_whole = request.query.get("all") == "1"
    context: dict[str, Any] = {
        "case": case,
        "row": row_of(case, listed=listed, now_ms=now),
        "name": foreign(case.ticket_id),
        "meanwhile": meanwhile(desk, case, user, now),
        "same_tenant": [row_of(each, listed=Filter(), now_ms=now) for each in around.same_tenant],
        "derived": [row_of(each, listed=Filter(), now_ms=now) for each in around.derived],
        "whole_url": str(request.rel_url.update_query({"all": "1"})),
        "list_url": list_url(listed),
        "next_url": await next_url(desk, case, listed),
        "query": listed.query,
        "may_settle": case.kind is Kind.DECISION
        and case.state is State.WAITING
        and user.may(ConsoleRole.SETTLE),
        "desk": about_desk(request, desk),
    }
    if case.kind is not Kind.DECISION:
        sides = [case] if around.origin is None else [around.origin, case]
        values = [await desk.records.value(each.place) for each in sides]
        context["sides"] = [
            (foreign(each.place), *document_parts(value, is_whole=is_whole))
            for each, value in zip(sides, values, strict=True)
        ]
        return render(request, "record.html", **context)
    lying = await desk.records.lying(case)
    policy = await desk.policies.now()
    known = policy if isinstance(policy, Policy) else None
    context |= {
        "text": text_of_ticket(lying.ticket, is_whole=is_whole),
        "judged": judged(lying.record, known),
        "accepting": await accepting(desk, lying, policy, labels_of(request, known)),
        "press_id": str(uuid.uuid4()),
    }
    return render(request, "ticket.html", **context)


@page
async def show_accepting(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """The choice of labels, or with `part=outcome` what would follow from them alone."""
    del user
    if not is_fragment(request):
        raise web.HTTPSeeOther(str(request.rel_url).replace("/decide", "", 1))
    case = await case_in(request, desk)
    lying = await desk.records.lying(case)
    policy = await desk.policies.now()
    known = policy if isinstance(policy, Policy) else None
    chosen = labels_of(request, known)
    template = "outcome.html" if request.query.get("part") == "outcome" else "accept.html"
    return render(
        request,
        template,
        case=case,
        accepting=await accepting(desk, lying, policy, chosen),
        press_id=str(uuid.uuid4()),
        query=read_filter(request.query).query,
    )


@page
async def keep_looking(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """The page is still open: who else looks at it, and what became of the ticket meanwhile."""
    case, now = await case_in(request, desk), now_ms()
    desk.notes.look_at(case.place, user.subject, until_ms=now + LOOKING_MS)
    return render(request, "meanwhile.html", case=case, meanwhile=meanwhile(desk, case, user, now))


def labels_of(request: web.Request, policy: Policy | None) -> frozenset[str] | None:
    """The labels that the address chooses, if it does."""
    return None if policy is None else labels_in(request.query, policy)


def meanwhile(desk: ConsoleDesk, case: Case, user: User, now: int) -> dict[str, object]:
    """What others do with it: who looks, what was pressed, whether it was deferred, how it stands."""
    others = desk.notes.lookers([case.place], now_ms=now).get(case.place, [])
    deferred = desk.notes.deferred([case.place], now_ms=now).get(case.place)
    press = desk.notes.open_of(case.place)
    return {
        "lookers": [desk.name_of(by) for by in others if by != user.subject],
        "press": None if press is None else shown_press(press, now_ms=now, name=desk.name_of(press.by)),
        "is_mine": press is not None and press.by == user.subject,
        "deferred": deferred,
        "deferred_by": "" if deferred is None else desk.name_of(deferred.by),
        "state": str(case.state),
    }


async def accepting(
    desk: ConsoleDesk, lying: Lying, policy: Policy | Unusable, chosen: frozenset[str] | None
) -> Accepting:
    """What can be chosen, and what would follow."""
    if isinstance(policy, Unusable):
        return Accepting(why_not=policy.why)
    if lying.ticket is None:
        return Accepting(why_not=say("accept.no_text"))
    near = await desk.records.nearest(lying, policy)
    labels = frozenset(near.model) if chosen is None else chosen
    found = await desk.records.preview(lying, labels, policy)
    return Accepting(
        fields=fields_of(policy, lying.ticket, labels, near.model),
        suggested=suggested(near, policy),
        is_whole=near.is_whole,
        outcome=outcome_of(labels, found, policy),
    )


def _around(view: View, case: Case) -> Around:
    now = now_ms()
    same: list[Case] = []
    if case.tenant and case.kind is Kind.DECISION:
        found = view.newest(case.kind, "tenant", case.tenant, now_ms=now, most=NEIGHBOURS + 1)
        same = [each for each in found if each.id != case.id][:NEIGHBOURS]
    origin = None
    if case.kind is Kind.COLLISION:
        base = [
            each for each in view.find(case.key.partition(":")[0], now_ms=now) if each.kind is Kind.DECISION
        ]
        origin = base[0] if base else None
    derived = view.derived(case.key) if case.kind is Kind.DECISION else []
    return Around(same, derived, origin, view.settlements(key=case.key))
