"""Several tickets at once: `POST /bulk` freezes a list, `GET /bulk/{id}` shows what would follow, a press settles it.

Promise: the list does not change once it is frozen. Each ticket is settled by a settlement of its own, bound to its own
record; who presses has typed how many there are. All can be taken back together, for as long as one can.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial

from aiohttp import web
from ticketgate.agents.policy import Policy
from ticketgate.codecs.records.settlement import Action
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.desk.jobs import Job
from ticketgate.streams.console.desk.presses import Pressed
from ticketgate.streams.console.pages.settling import form_text
from ticketgate.streams.console.pages.telling import about_desk, is_fragment, page
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.shown.answers import choices_of, labels_in
from ticketgate.streams.console.shown.bulk_page import MOST_TICKETS, Bulk, BulkLine, Frozen
from ticketgate.streams.console.shown.filters import read_filter
from ticketgate.streams.console.shown.list_page import list_url
from ticketgate.streams.console.words import say
from ticketgate.streams.operations.review.rows import Case, Kind, State
from ticketgate.streams.operations.review.view import View
from yarl import URL

PATIENCE_S = 0.05
MOST_WHY = 4_000
ACTIONS = (Action.ACCEPT, Action.REJECT)


@page
async def freeze(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Freeze what is selected, or with `all` what the list shows from its beginning."""
    form = await request.post()
    query = form_text(form, "query")
    listed = read_filter(URL(f"/?{query}").query)
    action = next((each for each in ACTIONS if each == form_text(form, "action")), None)
    if action is None:
        raise PageRefusal(400, say("refused.form"), next_step=say("refused.form_next"))
    now = now_ms()
    places = [str(each) for each in form.getall("place", [])]
    takes_all = form_text(form, "all") == "1"

    def ask(view: View) -> list[Case]:
        if takes_all:
            return view.page(listed.wanted(now), now_ms=now, most=MOST_TICKETS + 1)
        return view.at(places[: MOST_TICKETS + 1], now_ms=now)

    found = [each for each in await desk.view.ask(ask) if _may_be_settled(each)]
    if not found:
        raise PageRefusal(400, say("bulk.none"), next_step=say("bulk.none_next"))
    frozen = Frozen(
        str(uuid.uuid4()),
        user.subject,
        action,
        tuple(found[:MOST_TICKETS]),
        listed.query,
        max(0, len(found) - MOST_TICKETS),
    )
    desk.frozen.put(frozen.id, frozen)
    raise web.HTTPSeeOther(f"/bulk/{frozen.id}")


@page
async def show_bulk(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """What would follow from it."""
    frozen = _frozen(request, desk, user)
    policy = await desk.policies.now()
    known = policy if isinstance(policy, Policy) else None
    chosen = None if known is None else labels_in(request.query, known)
    job = _begin(desk, frozen, chosen)
    await desk.jobs.wait(job, PATIENCE_S)
    if job.result is not None and not is_fragment(request):
        desk.log_texts(user.subject, "bulk", [each.key for each in frozen.cases])
    return render(
        request,
        "bulk_list.html" if is_fragment(request) else "bulk.html",
        frozen=frozen,
        job=job,
        bulk=job.result,
        chosen=None if chosen is None else sorted(chosen),
        fields=() if known is None or frozen.action is not Action.ACCEPT else choices_of(known, chosen or ()),
        why_not="" if isinstance(policy, Policy) or frozen.action is not Action.ACCEPT else policy.why,
        back=list_url(read_filter(URL(f"/?{frozen.query}").query)),
        most=MOST_TICKETS,
        desk=about_desk(request, desk),
    )


@page
async def press_bulk(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Settle all that may be."""
    frozen, form = _frozen(request, desk, user), await request.post()
    labels = frozenset(str(each) for each in form.getall("label", []))
    job = _begin(desk, frozen, labels if form_text(form, "chosen") == "1" else None)
    if not isinstance(bulk := job.result, Bulk):
        raise PageRefusal(409, say("bulk.not_ready"), next_step=say("refused.look_again"))
    policy = await desk.policies.now()
    hashes = {each.pressed.policy.hash for each in bulk.ready if each.pressed and each.pressed.policy}
    if hashes and (not isinstance(policy, Policy) or hashes != {policy.hash}):
        raise PageRefusal(409, say("refused.other_effects"), next_step=say("refused.look_again"))
    if form_text(form, "digest") != bulk.digest:
        raise PageRefusal(409, say("refused.other_effects"), next_step=say("refused.look_again"))
    if form_text(form, "count").strip().replace(",", "") != str(len(bulk.ready)):
        raise PageRefusal(
            400, say("bulk.wrong_count", count=len(bulk.ready)), next_step=say("bulk.wrong_count_next")
        )
    why = form_text(form, "why").strip()[:MOST_WHY]
    pressed = [replace(each.pressed, why=why) for each in bulk.ready if each.pressed is not None]
    if not desk.notes.of_batch(frozen.id):
        desk.presses.press(pressed, by=user.subject, key=user.key, batch=frozen.id)
    raise web.HTTPSeeOther(list_url(read_filter(URL(f"/?{frozen.query}").query)))


def _may_be_settled(case: Case) -> bool:
    return case.kind is Kind.DECISION and case.state is State.WAITING


def _frozen(request: web.Request, desk: ConsoleDesk, user: User) -> Frozen:
    found = desk.frozen.get(request.match_info["id"])
    if not isinstance(found, Frozen) or found.by != user.subject:
        raise PageRefusal(404, say("bulk.unknown"), next_step=say("bulk.unknown_next"))
    return found


def _begin(desk: ConsoleDesk, frozen: Frozen, chosen: frozenset[str] | None) -> Job:
    name = ("bulk", frozen.id, "as the model" if chosen is None else "\n".join(sorted(chosen)))
    return desk.jobs.begin(*name, work=partial(_look, desk, frozen, chosen))


async def _look(desk: ConsoleDesk, frozen: Frozen, chosen: frozenset[str] | None, job: Job) -> Bulk:
    policy = await desk.policies.now()
    lines: list[BulkLine] = []
    for place, case in enumerate(frozen.cases):
        job.progress("", place, len(frozen.cases))
        try:
            lines.append(await _line(desk, frozen.action, case, policy, chosen))
        except CommandError as err:
            lines.append(BulkLine(case=case, pressed=None, reasons=(str(err),)))
    return Bulk(tuple(sorted(lines, key=lambda each: each.pressed is None)))


async def _line(
    desk: ConsoleDesk, action: Action, case: Case, policy: object, chosen: frozenset[str] | None
) -> BulkLine:
    if (press := desk.notes.open_of(case.place)) is not None:
        return BulkLine(case=case, pressed=None, reasons=(say("bulk.pressed", name=desk.name_of(press.by)),))
    lying, press_id = await desk.records.lying(case), str(uuid.uuid4())
    if action is not Action.ACCEPT:
        return BulkLine(case=case, pressed=Pressed(id=press_id, lying=lying, action=action))
    if not isinstance(policy, Policy):
        return BulkLine(case=case, pressed=None, reasons=(say("refused.policy"),))
    if lying.ticket is None:
        return BulkLine(case=case, pressed=None, reasons=(say("accept.no_text"),))
    labels = frozenset((await desk.records.nearest(lying, policy)).model) if chosen is None else chosen
    found = await desk.records.preview(lying, labels, policy)
    if found.reasons:
        return BulkLine(case=case, pressed=None, reasons=found.reasons)
    pressed = Pressed(
        id=press_id, lying=lying, action=action, labels=labels, policy=policy, effects=found.effects
    )
    return BulkLine(case=case, pressed=pressed, effects=found.effects)
