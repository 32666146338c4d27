"""What every request passes: its id, its limits, who asks, whether they may, and that it is meant.

Promise: a handler of a route that names a role is called only for a person of that role, with a token of the session
and from a page of ours if it changes anything; what has no route is not called. Every answer bears an id and the
headers of headers.py; whatever goes wrong is a page that tells nothing of the inside.
Steps: 1 id and clock, 2 where it is from, 3 what it carries, 4 who, 5 room, 6 whether they may, 7 whether it is meant.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import web
from ticketgate.codecs.values.malformed import shorten
from ticketgate.streams.console.caller import CSRF, REQUEST_ID, USER, User
from ticketgate.streams.console.console_metrics import ConsoleMetrics
from ticketgate.streams.console.door.checks import (
    MOST_BODY,
    SAFE,
    local,
    require_form,
    require_meant,
    require_own,
    require_role,
)
from ticketgate.streams.console.door.sessions import MOST_STREAMS, Session
from ticketgate.streams.console.door.visitors import Visitors
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.rendering import redirection, render
from ticketgate.streams.console.routes import EVERYBODY, Handler, route_of
from ticketgate.streams.process.web.admission import Admission, Origins, room_for
from ticketgate.streams.process.web.errors import ApiError, new_request_id

log = logging.getLogger(__name__)

ID_HEADER = "X-Request-Id"
SIGN_IN = "/sign-in"
# Of what aiohttp raises: which methods there are, and where to go on.
KEPT = ("Allow", "Location")


class Guard:
    """Use `middlewares` in their order. timeout_s: longest time for an answer that is no stream."""

    def __init__(
        self,
        visitors: Visitors,
        *,
        origins: Origins,
        admission: Admission,
        metrics: ConsoleMetrics,
        timeout_s: float,
    ) -> None:
        self._visitors, self._origins, self._admission = visitors, origins, admission
        self._metrics, self._timeout_s = metrics, timeout_s

    @property
    def middlewares(self) -> Sequence[Any]:
        """The outer one first."""
        return (self._answer, self._let_through)

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """1: every request has an id, and every fault is a page."""
        request[REQUEST_ID], began = new_request_id(), time.perf_counter()
        try:
            response = await handler(request)
        except web.HTTPException as err:
            response = _page(request, _told(err.status, err.reason)) if err.status >= 400 else _plain(err)
            response.headers.update({name: err.headers[name] for name in KEPT if name in err.headers})
        except PageRefusal as err:
            response = _page(request, err)
        except ApiError as err:
            response = _page(request, _told(err.status, _message(err)))
            response.headers.update(err.headers)
        except TimeoutError:
            response = _page(request, self._too_slow())
        except ConnectionError:
            raise
        except Exception:
            log.exception("request %s to %s failed", request[REQUEST_ID], shorten(request.path))
            response = _page(
                request,
                PageRefusal(
                    500,
                    "The console failed.",
                    next_step="Its log has the reason under this request's number.",
                ),
            )
        if not response.prepared:
            response.headers.setdefault(ID_HEADER, request[REQUEST_ID])
        self._observe(request, response.status, time.perf_counter() - began)
        return response

    @web.middleware
    async def _let_through(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        require_own(request, self._origins)  # 2
        route = route_of(request)
        if route is None:
            # aiohttp's own answers: no such path, no such method.
            return await handler(request)
        require_form(request)  # 3
        async with AsyncExitStack() as held:
            if not route.is_stream:
                await held.enter_async_context(asyncio.timeout(self._timeout_s))
            session = await self._visitors.recognise(request, route)  # 4
            if session is not None:
                request[CSRF], request[USER] = session.csrf, _user_of(session)
            caller = None if session is None or route.is_stream else session.digest
            size = room_for(request.content_length, MOST_BODY) if request.can_read_body else 0
            held.enter_context(self._admission.enter(caller, size))  # 5
            if route.role == EVERYBODY:
                return await handler(request)
            if session is None:
                return _to_sign_in(request)
            require_role(request, route)  # 6
            if request.method not in SAFE:
                await require_meant(request, session)  # 7
            if route.is_stream:
                return await _streamed(request, handler, session)
            return await handler(request)

    def _observe(self, request: web.Request, status: int, seconds: float) -> None:
        route = route_of(request)
        if route is None:
            self._metrics.answered(route="none", method="any", status=status, seconds=seconds)
        elif not route.is_stream:
            self._metrics.answered(route=route.path, method=request.method, status=status, seconds=seconds)

    def _too_slow(self) -> PageRefusal:
        return PageRefusal(
            503,
            f"There was no answer within {self._timeout_s:g} s.",
            next_step="If you sent something, look whether it arrived before you send it again.",
        )


def _user_of(session: Session) -> User:
    person = session.person
    return User(name=person.name, subject=session.subject, role=person.role, key=person.key)


async def _streamed(request: web.Request, handler: Handler, session: Session) -> web.StreamResponse:
    """Ended with its session, or when newer ones need its place: a page that is gone leaves its stream behind until
    something is written to it."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a request is handled in a task")
    while len(session.streams) >= MOST_STREAMS:
        oldest = next(iter(session.streams))
        del session.streams[oldest]
        oldest.cancel()
    session.streams[task] = None
    try:
        return await handler(request)
    finally:
        session.streams.pop(task, None)


def _to_sign_in(request: web.Request) -> web.StreamResponse:
    """Where nobody is signed in. A script's request and a form get no page in place of what they wanted."""
    if request.method in SAFE and "HX-Request" not in request.headers:
        if request.headers.get("Sec-Fetch-Site") == "cross-site":
            # The browser keeps the cookie back as the link is from elsewhere; asked again from here, it sends it.
            return render(request, "again.html", address=local(request.path_qs))
        return redirection(f"{SIGN_IN}?next={quote(request.path_qs, safe='')}")
    refusal = PageRefusal(
        401,
        "Your session has ended. Nothing was sent.",
        next_step="Sign in, and look how it stands before you send it again.",
    )
    response = _page(request, refusal)
    if "HX-Request" in request.headers:
        there = urlsplit(request.headers.get("HX-Current-URL", ""))
        back = f"{there.path or '/'}{'?' if there.query else ''}{there.query}"
        response.headers["HX-Redirect"] = f"{SIGN_IN}?next={quote(back, safe='')}"
    return response


def _page(request: web.Request, refusal: PageRefusal) -> web.Response:
    response = render(
        request,
        "error.html",
        status=refusal.status,
        what=refusal.what,
        next_step=refusal.next_step,
    )
    if refusal.retry_after_s is not None:
        response.headers["Retry-After"] = str(refusal.retry_after_s)
    return response


def _told(status: int, what: str) -> PageRefusal:
    known = {
        404: PageRefusal(404, "There is no such page.", next_step="The list has what waits."),
        405: PageRefusal(405, "This page cannot be asked in that way."),
        413: PageRefusal(413, f"What was sent is larger than {MOST_BODY // 1024} KiB."),
    }
    return known.get(status) or PageRefusal(status, f"{what[:1].upper()}{what[1:]}.".replace("..", "."))


def _message(err: ApiError) -> str:
    body = err.body
    detail = body.get("detail") if isinstance(body, dict) else None
    return str(detail.get("message", "")) if isinstance(detail, dict) else ""


def _plain(err: web.HTTPException) -> web.Response:
    """What a page raised that is no fault: a redirection, or nothing new."""
    return web.Response(status=err.status)
