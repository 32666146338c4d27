"""What the console shows: its pages, each a module.

Here: `ROUTES`, each with its role, and `open_desk`, what they need while the console runs.
Not here: who is let in (beside, in door), templates (beside), the view (ticketgate.streams.operations.review).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.routes import Route


async def home(request: web.Request) -> web.StreamResponse:
    """What waits."""
    return render(request, "home.html")


ROUTES = (Route(method="GET", path="/", handler=home, role=ConsoleRole.READ),)


@asynccontextmanager
async def open_desk(application: web.Application, settings: Settings) -> AsyncIterator[None]:
    """What the pages need, in the application's keys, while it runs."""
    del application, settings
    yield
