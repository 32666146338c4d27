"""What a page says where there is nothing to show: no view yet, no broker, no such ticket.

Promise: whatever a page asks of the desk fails as a sentence with a way out, never as a trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from aiohttp import web
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.console.caller import USER, User
from ticketgate.streams.console.desk.console_desk import DESK, ConsoleDesk
from ticketgate.streams.console.desk.view_reader import ViewNotThere
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.words import say
from ticketgate.streams.kafka.broker import Unreachable

Handler = Callable[[web.Request, ConsoleDesk, User], Awaitable[web.StreamResponse]]
RETRY_S = 5


def page(handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A handler that is given the desk and the person, and whose faults are told."""

    @wraps(handler)
    async def told(request: web.Request) -> web.StreamResponse:
        desk = request.app[DESK]
        try:
            return await handler(request, desk, request[USER])
        except ViewNotThere:
            return render(
                request,
                "making.html",
                status=503,
                state=desk.following.state,
                desk=about_desk(request, desk),
            )
        except Unreachable as err:
            raise PageRefusal(
                503, say("refused.unreachable"), next_step=f"{err.what}; {err.remedy}", retry_after_s=RETRY_S
            ) from err
        except (CommandError, SettingsError) as err:
            raise PageRefusal(409, say("refused.cannot"), next_step=str(err)) from err

    return told


def about_desk(request: web.Request, desk: ConsoleDesk) -> dict[str, object]:
    """What every page shows of the desk: whether the view is whole and current."""
    del request
    return {"state": desk.following.state}


def is_fragment(request: web.Request) -> bool:
    """Whether a script asks for a part of the page that it shows already."""
    return request.headers.get("HX-Request") == "true"
