"""Console, worker and Redis are killed between a press and its effect: one effect, and the page tells no untruth."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ..support.deployment import ticket
from .conftest import NewPlace, Place, Seat, apart

pytest.importorskip("playwright.sync_api", reason="pip install 'ticketgate[browser]'")
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.redis]

# What may be said of a press that nobody knows the end of yet.
OPEN = ("pressed", "sending", "sent")
NAMES = ["console", "worker", "redis"]


@pytest.fixture
def place(places: NewPlace) -> Place:
    place = places(NAMES)
    apart(place.desk.deployment.send, [ticket(name, f"Ticket {name} about a refund.") for name in NAMES])
    apart(place.desk.reviews, len(NAMES))
    return place


def accept(seat: Seat, name: str) -> None:
    seat.open(f"/ticket/{name}")
    seat.page.keyboard.press("a")
    seat.page.keyboard.press("1")
    expect(seat.page.locator("#press-accept")).to_be_enabled()
    seat.page.locator("#press-accept").click()
    expect(seat.page.locator("#strip li").first).to_be_visible()


def stages(seat: Seat) -> list[str]:
    """What the page of presses says of each."""
    seat.open("/presses")
    return [
        (each or "").split()[1]
        for each in (line.get_attribute("data-said") for line in seat.page.locator("#main [data-said]").all())
    ]


def test_whatever_dies_between_a_press_and_its_effect_there_is_one(
    place: Place, seats: Callable[..., Seat]
) -> None:
    desk = place.desk
    seat = seats(place.console.url)
    seat.sign_in("anna")

    # The console, before it has sent anything.
    accept(seat, "console")
    place.console.kill()
    place.console.start()
    seat.sign_in("anna", "/presses")
    assert set(stages(seat)) <= {*OPEN, "accepted", "not_sent"}
    # The worker, before it can have taken it.
    desk.deployment.workers[-1].kill()
    accept(seat, "worker")
    seat.page.wait_for_timeout(6_000)
    assert stages(seat)[0] in OPEN
    desk.deployment.start_worker(ROLES="decide,settle").wait_ready(120)
    # Redis, before the worker can have taken it.
    accept(seat, "redis")
    place.valkey.kill()
    seat.page.wait_for_timeout(6_000)
    assert stages(seat)[0] in OPEN
    place.valkey.start()

    def settled() -> bool:
        return {*stages(seat)} <= {"accepted", "not_sent"}

    desk.wait_until(settled, 300)
    dispatched = [each["ticket_id"] for each in apart(desk.dispatched)]
    told = dict(zip(reversed(NAMES), stages(seat), strict=True))
    assert {name: dispatched.count(name) for name in NAMES} == {
        name: int(told[name] == "accepted") for name in NAMES
    }
    assert told["worker"] == told["redis"] == "accepted"
    keys = [json.loads(each.value or b"{}")["id"] for each in apart(desk.deployment.committed, "settled")]
    assert len(keys) == len(set(keys))
