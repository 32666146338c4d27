"""What there is to ask, and who may: each route names its role, and what names none does not exist.

Promise: `add_routes` is the only way into the application, and refuses a route twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from aiohttp import web
from ticketgate.agents.settling.console_keys import ConsoleRole

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

EVERYBODY: Final = "everybody"
"""In place of a role: no sign-in is needed. For the sign-in page, static files and health alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path, as aiohttp writes paths: `/ticket/{key}`.

    role: the least that is needed. is_stream: an answer that goes on (server-sent events): it has no deadline, there
    are few of them a session, of which a newer one ends the oldest, and it is cancelled when the session ends.
    is_quiet: asked by a page on its own, so that it does not keep a session from ending.
    """

    method: str
    path: str
    handler: Handler
    role: ConsoleRole | Literal["everybody"]
    is_stream: bool = False
    is_quiet: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.role, ConsoleRole) and self.role != EVERYBODY:
            raise ValueError(f"{self.method} {self.path}: role is a ConsoleRole or EVERYBODY")


Routes = dict[web.AbstractRoute, Route]
ROUTES: web.AppKey[Routes] = web.AppKey("routes", dict)


def add_routes(application: web.Application, routes: Iterable[Route]) -> None:
    """Add them. GET answers HEAD as well, but for streams."""
    known = application.setdefault(ROUTES, {})
    for each in routes:
        known[application.router.add_route(each.method, each.path, each.handler)] = each
        if each.method == "GET" and not each.is_stream:
            known[application.router.add_route("HEAD", each.path, each.handler)] = each


def route_of(request: web.Request) -> Route | None:
    """The route that a request found; None where there is none."""
    return request.app[ROUTES].get(request.match_info.route)
