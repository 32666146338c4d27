"""The console's pages before a desk without a broker, with browsers that keep cookies."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from ticketgate.streams.console.app import console_application
from ticketgate.streams.console.door.people import People

from ....support.deciding import SUPPORT
from ....support.still_desk import StillDesk
from ..conftest import Client, door_settings, sign_in


@dataclass
class Answer:
    """What a page answered."""

    status: int
    html: str
    url: str

    @property
    def text(self) -> str:
        """As it is read."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.html)).split())

    @property
    def tags(self) -> set[str]:
        """The elements in it."""
        found: set[str] = set()

        class Tags(HTMLParser):
            def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
                found.add(tag)

        Tags().feed(self.html)
        return found

    def form(self, action: str) -> dict[str, Any]:
        """The hidden fields of the form with this `action` field."""
        for form in re.findall(r"<form method=\"post\".*?</form>", self.html, re.DOTALL):
            pairs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
            fields: dict[str, Any] = {}
            for name, value in pairs:
                kept = unescape(value)
                fields[name] = [*fields[name], kept] if name == "label" and name in fields else kept
                if name == "label":
                    fields[name] = fields[name] if isinstance(fields[name], list) else [kept]
            if fields.get("action") == action:
                return fields
        raise AssertionError(f"no form to {action}: {self.text}")

    def links(self, part: str) -> list[str]:
        """The addresses that have a part."""
        return [unescape(each) for each in re.findall(r'href="([^"]+)"', self.html) if part in each]


@dataclass
class Browser:
    """A person at a page."""

    client: Client

    async def get(self, path: str, **headers: str) -> Answer:
        async with self.client.get(path, headers=headers) as response:
            return Answer(response.status, await response.text(), str(response.url.relative()))

    async def post(self, path: str, data: dict[str, Any], **headers: str) -> Answer:
        pairs = [
            (name, each)
            for name, value in data.items()
            for each in (value if isinstance(value, list) else [value])
        ]
        given = {"Origin": str(self.client.make_url("/").origin()), **headers}
        async with self.client.post(path, data=pairs, headers=given) as response:
            return Answer(response.status, await response.text(), str(response.url.relative()))


Come = Callable[..., Awaitable[Browser]]


@pytest.fixture
def still(tmp_path: Path) -> StillDesk:
    """A desk on which nothing lies yet."""
    (tmp_path / "policy.toml").write_text(SUPPORT)
    return StillDesk(door_settings(tmp_path, policy=str(tmp_path / "policy.toml")))


@pytest.fixture
async def come(still: StillDesk) -> AsyncIterator[Come]:
    """A person comes in; the first opens the console."""
    server = TestServer(console_application(still.settings, People(still.settings), desk=still.opening))
    clients: list[Client] = []

    async def make(name: str = "anna") -> Browser:
        if not clients:
            await server.start_server()
        client = TestClient(server)
        clients.append(client)
        await sign_in(client, name)
        return Browser(client)

    yield make
    for client in clients:
        await client.close()
    await server.close()
