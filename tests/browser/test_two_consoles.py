"""Two consoles before one deployment, and one that is killed within the seconds in which a press can be taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from ..support.console_process import ConsoleProcess
from ..support.deployment import ticket
from .conftest import NewPlace, Place, Seat, apart

pytest.importorskip("playwright.sync_api", reason="pip install 'ticketgate[browser]'")
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.redis]

RACES = [f"race-{number}" for number in range(3)]


@pytest.fixture(scope="module")
def place(places: NewPlace) -> Place:
    place = places([*RACES, "killed"])
    names = [*RACES, "killed"]
    apart(place.desk.deployment.send, [ticket(name, f"Ticket {name} about a refund.") for name in names])
    apart(place.desk.reviews, len(names))
    return place


@pytest.fixture(scope="module")
def second(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    """Another console, with a view and a log of its own."""
    folder = tmp_path_factory.mktemp("second")
    console = ConsoleProcess(
        place.desk.deployment,
        folder,
        REVIEW_VIEW=str(folder / "view.sqlite3"),
    )
    yield console
    console.kill()


def prepare(seat: Seat, name: str, action: str) -> None:
    """Open a ticket, so that one click presses."""
    seat.open(f"/ticket/{name}")
    seat.page.keyboard.press({"accept": "a", "reject": "r"}[action])
    if action == "accept":
        seat.page.keyboard.press("1")
        expect(seat.page.locator("#press-accept")).to_be_enabled()


def press(seat: Seat, action: str) -> None:
    """Returns once the console has answered."""
    button = "#press-accept" if action == "accept" else f"details#{action} button.main"
    with seat.page.expect_response(lambda answer: "/settle" in answer.url and answer.status < 400):
        seat.page.locator(button).click()


def said(seat: Seat) -> str:
    """What the page of presses says of the last."""
    seat.open("/presses")
    found = seat.page.locator("#main [data-said]").first.get_attribute("data-said")
    return (found or "").split()[1]


@pytest.mark.parametrize("name", RACES)
def test_of_two_consoles_that_settle_one_ticket_one_does_and_the_other_says_that_it_did_not(
    place: Place, second: ConsoleProcess, seats: Callable[..., Seat], name: str
) -> None:
    one, other = seats(place.console.url), seats(second.url)
    one.sign_in("anna")
    other.sign_in("ben")
    prepare(one, name, "accept")
    prepare(other, name, "reject")

    press(one, "accept")
    press(other, "reject")

    settled = {"accepted", "rejected", "already_settled"}
    place.desk.wait_until(lambda: {said(one), said(other)} <= settled, 180)
    told = {"accept": said(one), "reject": said(other)}
    assert told in (
        {"accept": "accepted", "reject": "already_settled"},
        {"accept": "already_settled", "reject": "rejected"},
    )
    dispatched = [each["ticket_id"] for each in apart(place.desk.dispatched)].count(name)
    assert dispatched == (1 if told["accept"] == "accepted" else 0)
    for seat in (one, other):
        seat.open(f"/ticket/{name}")
        expect(seat.page.locator("#decide")).to_contain_text("accepted" if dispatched else "rejected")


def test_a_press_of_a_console_that_was_killed_before_it_sent_is_said_not_sent_and_can_be_pressed_again(
    place: Place, seats: Callable[..., Seat]
) -> None:
    seat = seats(place.console.url)
    seat.sign_in("anna")
    prepare(seat, "killed", "accept")

    press(seat, "accept")
    place.console.kill()
    sent = [json.loads(each.value or b"{}") for each in apart(place.desk.deployment.committed, "settlements")]
    place.console.start()
    seat.sign_in("anna", "/presses")

    if "killed" in [each["ticket_id"] for each in sent]:
        # The machine was slower than the five seconds: sent, so it has its one effect.
        place.desk.wait_until(lambda: said(seat) == "accepted", 180)
    else:
        assert said(seat) == "not_sent"
        assert [each["ticket_id"] for each in apart(place.desk.dispatched)].count("killed") == 0
        prepare(seat, "killed", "accept")
        press(seat, "accept")
        place.desk.wait_until(lambda: said(seat) == "accepted", 180)
    assert [each["ticket_id"] for each in apart(place.desk.dispatched)].count("killed") == 1
