"""A console's door on a free port, with people and a clock of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import CookieJar, web
from aiohttp.test_utils import TestClient, TestServer
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.console.app import console_application
from ticketgate.streams.console.door.people import Entry, People, write_entries
from ticketgate.streams.console.door.tokens import hashed
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.routes import Route

TOKENS = {"anna": "anna's token", "ben": "ben's token", "cleo": "cleo's token"}
ROLES = {"anna": ConsoleRole.SETTLE, "ben": ConsoleRole.READ, "cleo": ConsoleRole.ADMINISTER}
# Quick ones: each says itself what it costs.
HASHES = {name: hashed(token, cost=2) for name, token in TOKENS.items()}
ENTRIES = {name: Entry(role=role, token=HASHES[name]) for name, role in ROLES.items()}


async def _page(request: web.Request) -> web.StreamResponse:
    return render(request, "signed_out.html", by_proxy=False)


# One page of its own, for the console's need a broker.
PAGES = (Route(method="GET", path="/", handler=_page, role=ConsoleRole.READ),)

Client = TestClient[web.Request, web.Application]
Opening = Callable[..., Awaitable[Client]]


def door_settings(folder: Path, **given: str) -> Settings:
    """A key that may do all, three people, and what is given."""
    (folder / "secret").write_text("s" * 64)
    (folder / "keys.toml").write_text(
        '[desk]\nalgorithm = "HS256"\nroles = ["read", "settle", "administer"]\nsecret_file = "secret"\n'
    )
    write_entries(folder / "users.json", ENTRIES)
    values = {
        "console_keys": str(folder / "keys.toml"),
        "console_key": "desk",
        "console_users": str(folder / "users.json"),
        "review_view": str(folder / "view.sqlite3"),
        **given,
    }
    return load_settings(
        environment={f"TICKETGATE_{name.upper()}": value for name, value in values.items()}
    ).settings


@pytest.fixture
async def opening(tmp_path: Path) -> AsyncIterator[Opening]:
    """Open a console with these settings; it comes with a browser that keeps cookies and follows nothing."""
    opened: list[Client] = []

    async def make(routes: Iterable[Route] = PAGES, **given: str) -> Client:
        settings = door_settings(tmp_path, **given)
        application = console_application(settings, People(settings), routes=routes, desk=no_desk)
        # Cookies of an address too.
        client = TestClient(TestServer(application), cookie_jar=CookieJar(unsafe=True))
        await client.start_server()
        opened.append(client)
        return client

    yield make
    for client in opened:
        await client.close()


@asynccontextmanager
async def no_desk(_: web.Application, __: Settings) -> AsyncIterator[None]:
    """For pages that need nothing."""
    yield


async def sign_in(client: Client, name: str = "anna", **more: str) -> None:
    """As that person."""
    form = {"name": name, "token": TOKENS[name], "next": "/", **more}
    async with client.post("/sign-in", data=form, allow_redirects=False) as response:
        assert response.status == 303, await response.text()
