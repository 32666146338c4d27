"""What the console shows: its pages, each a module.

Here: `ROUTES`, each with its role, and `open_desk`, what they need while the console runs.
Not here: who is let in (beside, in door), templates and what goes into them (beside), the view
(ticketgate.streams.operations.review).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.console.desk.console_desk import DESK, opened
from ticketgate.streams.console.pages.bulk import freeze, press_bulk, show_bulk
from ticketgate.streams.console.pages.cases import show_case, show_timeline
from ticketgate.streams.console.pages.dead_letters import send_letters, show_letters
from ticketgate.streams.console.pages.listing import show_list
from ticketgate.streams.console.pages.news import tell_news
from ticketgate.streams.console.pages.open_effects import settle_effect, show_effects
from ticketgate.streams.console.pages.settling import defer, press, show_presses, take_back
from ticketgate.streams.console.pages.tickets import keep_looking, show_accepting, show_ticket
from ticketgate.streams.console.routes import Handler, Route


def _reads(path: str, handler: Handler, *, is_quiet: bool = False, is_stream: bool = False) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        role=ConsoleRole.READ,
        is_quiet=is_quiet,
        is_stream=is_stream,
    )


def _settles(path: str, handler: Handler) -> Route:
    return Route(method="POST", path=path, handler=handler, role=ConsoleRole.SETTLE)


ROUTES = (
    _reads("/", show_list),
    _reads("/news", tell_news, is_quiet=True, is_stream=True),
    _reads("/ticket/{key}", show_ticket),
    _reads("/ticket/{key}/decide", show_accepting),
    Route(
        method="POST",
        path="/ticket/{key}/looking",
        handler=keep_looking,
        role=ConsoleRole.READ,
        is_quiet=True,
    ),
    _settles("/ticket/{key}/settle", press),
    _settles("/ticket/{key}/defer", defer),
    _reads("/case/{key}", show_case),
    _reads("/case/{key}/timeline", show_timeline, is_quiet=True),
    _reads("/dead-letters", show_letters),
    _reads("/dead-letters/list", show_letters, is_quiet=True),
    _settles("/dead-letters/send", send_letters),
    _reads("/effects", show_effects),
    _settles("/effects/settle", settle_effect),
    _settles("/bulk", freeze),
    _reads("/bulk/{id}", show_bulk),
    _settles("/bulk/{id}/press", press_bulk),
    _reads("/presses", show_presses),
    _reads("/presses/strip", show_presses, is_quiet=True),
    _settles("/presses/{batch}/take-back", take_back),
)


@asynccontextmanager
async def open_desk(application: web.Application, settings: Settings) -> AsyncIterator[None]:
    """What the pages need, in the application's keys, while it runs."""
    async with opened(settings) as desk:
        application[DESK] = desk
        yield
