"""What a request is refused for: where it is from, what it carries, who asks, and whether that was meant.

Each raises PageRefusal, or the refusal of the web port's own limits, or aiohttp's of what is too large; the guard tells
all of them.
"""

from __future__ import annotations

import hmac
import re
from typing import Any, Final

from aiohttp import web
from multidict import MultiDictProxy
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.console.caller import USER
from ticketgate.streams.console.door.sessions import Session
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.routes import Route
from ticketgate.streams.process.web.admission import Origins

FORM = "application/x-www-form-urlencoded"
# Two hundred rows, each with its key and hash, are 30 kB; an edited assignment and a reason less.
MOST_BODY: Final = 256 * 1024
SAFE = ("GET", "HEAD")
CSRF_FIELD, CSRF_HEADER = "csrf", "X-CSRF-Token"
# A path of ours: no other host, and nothing that a browser makes one of.
LOCAL = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
MOST_ADDRESS = 4096


def require_own(request: web.Request, origins: Origins) -> None:
    """By a name of ours, and from a page of ours if it is from a page. A link from elsewhere may lead here."""
    origins.require(request)
    site = request.headers.get("Sec-Fetch-Site", "none")
    is_link = request.method in SAFE and request.headers.get("Sec-Fetch-Mode") == "navigate"
    is_framed = request.headers.get("Sec-Fetch-Dest") in ("iframe", "frame", "object", "embed")
    if (site not in ("same-origin", "none") and not is_link) or is_framed:
        raise PageRefusal(403, "A page from elsewhere asked for this.", next_step="Open the console itself.")


def require_form(request: web.Request) -> None:
    """A body, if there is one, that is a form and not too large."""
    if (request.content_length or 0) > MOST_BODY:
        raise web.HTTPRequestEntityTooLarge(MOST_BODY)
    if not request.can_read_body:
        return
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise PageRefusal(415, "What was sent is compressed, which is not taken.")
    if request.content_type != FORM or (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
        raise PageRefusal(415, "What was sent is no form.")


def require_role(request: web.Request, route: Route) -> None:
    """A person of the route's role. What is none is allowed to nobody."""
    user = request[USER]
    if isinstance(route.role, ConsoleRole) and user.may(route.role):
        return
    raise PageRefusal(
        403,
        f"Your role is {user.role}; this needs {route.role}.",
        next_step="Who administers the console can give you another.",
    )


async def require_meant(request: web.Request, session: Session) -> None:
    """The session's token, as a field of the form or as a header. The form is read either way: the page reads it."""
    form = await form_of(request)
    given = request.headers.get(CSRF_HEADER)
    if given is None:
        given = str(form.get(CSRF_FIELD, ""))
    if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), session.csrf.encode()):
        raise PageRefusal(
            403,
            "This form is of another session. Nothing was sent.",
            next_step="Open the page again, and send it from there.",
        )


async def form_of(request: web.Request) -> MultiDictProxy[Any]:
    """The form's fields."""
    try:
        return await request.post()
    except ValueError as err:
        raise PageRefusal(400, f"The form cannot be read ({type(err).__name__}).") from None


def local(address: str) -> str:
    """The address, if it is a path of ours; else the first page."""
    return address if len(address) <= MOST_ADDRESS and LOCAL.fullmatch(address) else "/"
