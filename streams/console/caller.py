"""Who asks: the person, what that person may do, and by which key that person's settlements are signed.

Promise: a handler of a route that names a role finds `request[USER]`, and the user has at least that role.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aiohttp import web
from ticketgate.agents.settling.console_keys import ConsoleKey, ConsoleRole

# Each may do what those before it may.
RANKS = (ConsoleRole.READ, ConsoleRole.SETTLE, ConsoleRole.ADMINISTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """One signed-in person. subject: the pseudonym that records bear. key: what settlements are signed by."""

    name: str
    subject: str
    role: ConsoleRole
    key: ConsoleKey = field(repr=False)

    def may(self, role: ConsoleRole) -> bool:
        """Whether this person has that role, or one above it."""
        return RANKS.index(self.role) >= RANKS.index(role)


USER: web.RequestKey[User] = web.RequestKey("user", User)
"""The person. Not there on routes for everybody."""

CSRF: web.RequestKey[str] = web.RequestKey("csrf", str)
"""What a form of this session must send back in the field `csrf`, or a script in the header `X-CSRF-Token`."""

REQUEST_ID: web.RequestKey[str] = web.RequestKey("request_id", str)
"""By which the page and the log speak of one request."""
