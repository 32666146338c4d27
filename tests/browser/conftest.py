"""Headless Chromium before the console, which stands before a worker, Apache Kafka and Valkey."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.console_process import ConsoleProcess, token_of
from ..support.deployment import Deployment
from ..support.desk import Desk, desk_settings

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'ticketgate[browser]'")

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
T = TypeVar("T")


def apart(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """In a thread: Playwright's own event loop runs in this one, and another cannot."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function, *arguments, **named).result()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser of the system, without a window."""
    if not CHROMIUM.exists():
        pytest.fail(f"no browser at {CHROMIUM}: apt-get install chromium, or name one in CHROMIUM")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Seat:
    """A person at a browser. faults: what the browser complained of; asked: every address that it asked for."""

    page: Any
    url: str
    faults: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def sign_in(self, name: str = "anna", path: str = "/") -> None:
        """By the form, from the page that was wanted."""
        self.page.goto(self.url + path)
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Token").fill(token_of(name))
        self.page.get_by_role("button", name="Sign in").click()
        playwright.expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    def open(self, path: str) -> None:
        """A page, and once more while the view is being made."""
        self.page.goto(self.url + path)
        for _ in range(60):
            if not self.page.locator("#again").count():
                return
            self.page.wait_for_timeout(500)
            self.page.goto(self.url + path)
        raise AssertionError(self.page.content())

    def require_no_fault(self) -> None:
        """Nothing was complained of, and nothing was asked of another place."""
        assert self.faults == []
        assert [each for each in self.asked if not each.startswith(self.url)] == []


@pytest.fixture
def seats(chromium: Any) -> Iterator[Callable[..., Seat]]:
    """`seats(url, width=1280, theme="light")`: a browser of its own, as another person has."""
    with ExitStack() as stack:

        def sit(url: str, *, width: int = 1280, theme: str = "light") -> Seat:
            context = chromium.new_context(
                viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
            )
            stack.callback(context.close)
            context.set_default_timeout(60_000)
            page = context.new_page()
            seat = Seat(page, url)
            page.on("console", lambda said: said.type == "error" and seat.faults.append(said.text))
            page.on("pageerror", lambda error: seat.faults.append(str(error)))
            page.on("dialog", lambda dialog: (seat.faults.append(dialog.message), dialog.dismiss()))
            page.on("request", lambda request: seat.asked.append(request.url))
            return seat

        yield sit


@dataclass
class Place:
    """A deployment with a worker, and a console before it."""

    desk: Desk
    console: ConsoleProcess
    valkey: Valkey


NewPlace = Callable[..., Place]


@pytest.fixture(scope="module")
def places(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewPlace]:
    """`places(tickets)`: each with a Valkey of its own."""
    with ExitStack() as stack:

        def make(tickets: list[str], *, roles: str = "decide,settle", **settings: str) -> Place:
            folder = tmp_path_factory.mktemp("place")
            valkey = stack.enter_context(Valkey(data=folder / "valkey"))
            wanted = desk_settings(folder, tickets, review_view=str(folder / "view.sqlite3"), **settings)
            deployment = Deployment(
                kafka.bootstrap,
                valkey.url,
                folder / "deployment",
                {name.upper(): value for name, value in wanted.items()},
            )
            apart(stack.enter_context, deployment)
            deployment.start_worker(ROLES=roles)
            console = ConsoleProcess(deployment, folder)
            stack.callback(console.kill)
            return Place(Desk(deployment, folder), console, valkey)

        yield make
