"""The console on a real broker, with a real worker: pressed, taken, told; the whole case; dead letters and effects."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.console.app import console_application
from ticketgate.streams.console.door.people import People, write_entries

from ....support.deployment import Sent, ticket
from ....support.desk import RIGHT, Desk, desk_settings
from ...conftest import NewDeployment
from ..conftest import ENTRIES, sign_in
from .conftest import Answer, Browser
from .test_bulk import csrf_of

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

CHOICE = "&".join(["chosen=1", *(f"q%3A{each}={each}" for each in RIGHT)])


@dataclass
class Console:
    """A desk with a console, and a person before it."""

    desk: Desk
    anna: Browser

    async def until(self, path: str, holds: Callable[[Answer], bool]) -> Answer:
        """The page, once something holds of it."""
        page: Answer | None = None
        try:
            async with asyncio.timeout(90):
                while page is None or not holds(page):
                    page = await self.anna.get(path)
                    await asyncio.sleep(0.1)
        except TimeoutError as err:
            raise AssertionError(page and page.text) from err
        return page


@pytest.fixture
def desk(deploy: NewDeployment, tmp_path: Path) -> Desk:
    """A, B and C are in review, a record could not be read, and a worker takes settlements."""
    write_entries(tmp_path / "users.json", ENTRIES)
    given = desk_settings(
        tmp_path,
        list("ABC"),
        review_view=str(tmp_path / "view.sqlite3"),
        console_users=str(tmp_path / "users.json"),
    )
    desk = Desk(deploy(**given), tmp_path)
    desk.deployment.start_worker(ROLES="decide,settle")
    desk.deployment.send([ticket(name, f"Ticket {name} about a refund.") for name in "ABC"])
    desk.deployment.send([Sent(b"no JSON", key=b"bad")])
    desk.reviews(3)
    return desk


@pytest.fixture
async def console(desk: Desk) -> AsyncIterator[Console]:
    settings = load_settings(environment=desk.deployment.environment).settings
    client = TestClient(TestServer(console_application(settings, People(settings))))
    await client.start_server()
    await sign_in(client)
    yield Console(desk, Browser(client))
    await client.close()


async def test_a_person_settles_on_a_page_and_sees_what_became_of_it(console: Console) -> None:
    anna = console.anna
    await console.until("/", lambda page: all(f" {name} Ticket" in page.text for name in "ABC"))
    page = await anna.get(f"/ticket/A?{CHOICE}")

    await anna.post("/ticket/A/settle", page.form("accept"))
    pressed = await anna.get("/presses")
    told = await console.until("/presses", lambda page: "accept A accepted" in page.text)
    left = await console.until("/", lambda page: "2 waiting" in page.text)

    assert "not sent yet" in pressed.text
    assert "Take back" not in told.text
    assert " A Ticket" not in left.text
    (decision,) = await asyncio.to_thread(console.desk.dispatched)
    assert (decision["ticket_id"], decision["selected"]) == ("A", list(RIGHT))


async def test_the_whole_case_dead_letters_and_open_effects_are_shown(console: Console) -> None:
    await console.until("/", lambda page: "3 waiting" in page.text)
    csrf = await csrf_of(console.anna)

    case = await console.until("/case/B", lambda page: "Reading" not in page.text)
    letters = await console.until("/dead-letters", lambda page: "Reading" not in page.text)
    effects = await console.anna.get("/effects")
    (place,) = re.findall(r'name="place" value="([^"]+)"', letters.html)
    would = await console.anna.post("/dead-letters/send", {"csrf": csrf, "place": place})

    assert "2 records over all topics" in case.text
    assert "Ticket B about a refund." in case.text
    assert "1 dead letter" in letters.text
    assert "held back" in would.text
    assert "mend them by the command" in would.text
    assert "Nothing is open." in effects.text


async def test_a_view_that_is_taken_away_is_made_anew_by_itself(console: Console) -> None:
    await console.until("/", lambda page: "3 waiting" in page.text)

    for each in console.desk.folder.glob("view.sqlite3*"):
        each.unlink()

    await console.until("/", lambda page: page.status == 200 and "3 waiting" in page.text)
