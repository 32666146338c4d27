"""Who a request is from: the session that its cookie names, or the person whom a proxy names.

Promise: a session that a proxy opened holds only where a proxy names the same person; a cookie's name changes at every
sign-in. Whoever is no longer among the people has no session.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path

from aiohttp import web
from ticketgate.streams.console.console_metrics import ConsoleMetrics
from ticketgate.streams.console.door.people import People, Person
from ticketgate.streams.console.door.proxies import Proxies, Said
from ticketgate.streams.console.door.sessions import Session, Sessions
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.routes import EVERYBODY, Route
from ticketgate.streams.operations.review.people import pseudonym_of

# The prefix binds a cookie to this host and to https; browsers refuse it over http.
SECURE_COOKIE, PLAIN_COOKIE = "__Host-ticketgate", "ticketgate"

SAID: web.RequestKey[Said] = web.RequestKey("said", Said)
"""Where the request comes from, as far as it is believed."""


@dataclass(frozen=True, slots=True)
class Cookie:
    """What the answer sets. value: None takes it away."""

    value: str | None
    is_secure: bool


COOKIE: web.RequestKey[Cookie] = web.RequestKey("cookie", Cookie)


class Visitors:
    """Recognises who asks. people_file: of pseudonyms."""

    def __init__(
        self,
        people: People,
        sessions: Sessions,
        proxies: Proxies,
        *,
        people_file: Path,
        metrics: ConsoleMetrics,
    ) -> None:
        self.people, self.sessions, self.proxies = people, sessions, proxies
        self._people_file, self._metrics = people_file, metrics

    async def recognise(self, request: web.Request, route: Route) -> Session | None:
        """The request's session, if it has one that holds. Raises PageRefusal for whom a proxy names and we do not
        know."""
        said = request[SAID] = self.proxies.read(request)
        session = self._of_cookie(request, is_use=route.role != EVERYBODY and not route.is_quiet)
        if said.name is None:
            return None if session is not None and session.by_proxy else session
        if session is not None and session.by_proxy and session.person.name == said.name:
            return session
        if route.role == EVERYBODY:
            return None
        person = self.people.get(said.name)
        if person is None:
            self._metrics.signed_in("unknown_to_us")
            raise PageRefusal(
                403,
                "The proxy named you, and nobody of that name may come in here.",
                next_step="Who administers the console can add you.",
            )
        self._metrics.signed_in("by_proxy")
        return await self.open(request, person, by_proxy=True)

    async def open(self, request: web.Request, person: Person, *, by_proxy: bool = False) -> Session:
        """A new session, in place of the one that the request had."""
        self.close(request)
        subject = await asyncio.to_thread(pseudonym_of, self._people_file, person.name)
        name, session = self.sessions.open(person, subject=subject, by_proxy=by_proxy)
        request[COOKIE] = Cookie(name, _is_secure(request))
        return session

    def close(self, request: web.Request) -> None:
        """End the request's session, if it has one."""
        session = self._of_cookie(request, is_use=False)
        if session is not None:
            self.sessions.end(session)
        request[COOKIE] = Cookie(None, _is_secure(request))

    def _of_cookie(self, request: web.Request, *, is_use: bool) -> Session | None:
        name = request.cookies.get(SECURE_COOKIE) or request.cookies.get(PLAIN_COOKIE)
        return None if name is None else self.sessions.find(name, is_use=is_use)


async def set_cookie(request: web.Request, response: web.StreamResponse) -> None:
    """A signal of aiohttp's, before an answer begins. By then it has made headers of the cookies that it knows of."""
    cookie = request.get(COOKIE)
    if cookie is None:
        return
    made = SimpleCookie()
    for name, is_secure in ((SECURE_COOKIE, True), (PLAIN_COOKIE, False)):
        if cookie.value is not None and is_secure == cookie.is_secure:
            made[name] = cookie.value
        elif name in request.cookies:
            made[name] = ""
            made[name]["max-age"] = "0"
        else:
            continue
        made[name]["path"], made[name]["samesite"], made[name]["httponly"] = "/", "Strict", True
        if is_secure:
            made[name]["secure"] = True
    for each in made.values():
        response.headers.add("Set-Cookie", each.OutputString())


def _is_secure(request: web.Request) -> bool:
    """Whether the browser came by https: by the connection, a proxy's word, or the page that the form was on."""
    return (
        request.secure or request[SAID].is_secure or request.headers.get("Origin", "").startswith("https://")
    )
