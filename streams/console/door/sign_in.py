"""The pages of the door: signing in, and signing out.

Promise: signing in changes the session's name; what the form says comes next is a page of ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from http import HTTPStatus

from aiohttp import web
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.console.caller import USER
from ticketgate.streams.console.console_metrics import ConsoleMetrics
from ticketgate.streams.console.door.attempts import Attempts
from ticketgate.streams.console.door.checks import form_of, local
from ticketgate.streams.console.door.people import Person
from ticketgate.streams.console.door.tokens import fits, of_nobody
from ticketgate.streams.console.door.visitors import SAID, Visitors
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.rendering import redirection, render
from ticketgate.streams.console.routes import EVERYBODY, Route

log = logging.getLogger(__name__)

MOST_NAME, MOST_TOKEN = 128, 256


class SignIn:
    """Signing in by name and token, and signing out."""

    def __init__(self, visitors: Visitors, *, attempts: Attempts, metrics: ConsoleMetrics) -> None:
        self._visitors, self._attempts, self._metrics = visitors, attempts, metrics

    @property
    def routes(self) -> Sequence[Route]:
        """What it answers."""
        return (
            Route(method="GET", path="/sign-in", handler=self._ask, role=EVERYBODY),
            Route(method="POST", path="/sign-in", handler=self._sign_in, role=EVERYBODY),
            Route(method="POST", path="/sign-out", handler=self._sign_out, role=ConsoleRole.READ),
            Route(method="GET", path="/signed-out", handler=self._signed_out, role=EVERYBODY),
        )

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        following = local(request.query.get("next", "/"))
        if USER in request or request[SAID].name is not None:
            return redirection(following)
        return render(request, "sign_in.html", next=following, name="", fault="")

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        form = await form_of(request)
        name, token, following = (str(form.get(field, "")) for field in ("name", "token", "next"))
        name, token, following = name.strip()[: MOST_NAME + 1], token.strip(), local(following)
        client = request[SAID].client
        try:
            person = await self._known(client, name, token)
        except PageRefusal:
            self._metrics.signed_in("slowed")
            raise
        if person is None:
            self._metrics.signed_in("refused")
            # Not the name: people write their token there.
            log.warning("a sign-in from %s was refused", client)
            return render(
                request,
                "sign_in.html",
                status=HTTPStatus.UNAUTHORIZED,
                next=following,
                name=name,
                fault="The name and the token do not belong together.",
            )
        session = await self._visitors.open(request, person)
        self._metrics.signed_in("signed_in")
        log.info("%s signed in from %s", session.subject, client)
        return redirection(following)

    async def _known(self, client: str, name: str, token: str) -> Person | None:
        async with self._attempts.trying(client):
            person = self._visitors.people.get(name)
            written = None if person is None else person.token
            is_right = len(token) <= MOST_TOKEN and await asyncio.to_thread(
                fits, token, written or of_nobody()
            )
            if person is None or written is None or not is_right:
                self._attempts.failed(client)
                return None
            self._attempts.succeeded(client)
            return person

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        self._visitors.close(request)
        return redirection("/signed-out")

    async def _signed_out(self, request: web.Request) -> web.StreamResponse:
        if USER in request:
            return redirection("/")
        return render(request, "signed_out.html", by_proxy=request[SAID].name is not None)
