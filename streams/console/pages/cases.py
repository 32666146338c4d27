"""The whole case of a ticket: `GET /case/{key}`, a timeline over all topics.

Promise: reading takes as long as the topics are, and no page waits for it: it is told how far it is. Who is shown the
records is written down before.
"""

from __future__ import annotations

from aiohttp import web
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.desk.jobs import Job
from ticketgate.streams.console.pages.finding import case_in
from ticketgate.streams.console.pages.telling import about_desk, page
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.shown.case_page import event_lines
from ticketgate.streams.console.shown.filters import Filter
from ticketgate.streams.console.shown.foreign import foreign
from ticketgate.streams.console.shown.list_page import row_of, ticket_url
from ticketgate.streams.operations.review.timeline import Event, timeline

# A page that is asked for again at once tells more than one that makes wait.
PATIENCE_S = 0.05


@page
async def show_case(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """The page, with what is read by now."""
    case = await case_in(request, desk)
    desk.log_texts(user.subject, "case", [case.key])
    job = _begin(desk, user, case.place, request, anew=True)
    await desk.jobs.wait(job, PATIENCE_S)
    return render(
        request,
        "case.html",
        case=case,
        name=foreign(case.ticket_id),
        row=row_of(case, listed=Filter(), now_ms=now_ms()),
        ticket_url=ticket_url(case),
        job=job,
        events=_lines(job),
        desk=about_desk(request, desk),
    )


@page
async def show_timeline(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """The timeline alone, for a page that waits for it."""
    case = await case_in(request, desk)
    job = _begin(desk, user, case.place, request, anew=False)
    await desk.jobs.wait(job, PATIENCE_S)
    return render(request, "timeline.html", case=case, job=job, events=_lines(job))


def _begin(desk: ConsoleDesk, user: User, place: str, request: web.Request, *, anew: bool) -> Job:
    async def work(job: Job) -> list[Event]:
        case = await case_in(request, desk)
        return await timeline(desk.settings, case, progress=job.progress)

    return desk.jobs.begin("timeline", user.subject, place, work=work, anew=anew)


def _lines(job: Job) -> object:
    return None if job.result is None else event_lines(job.result)
