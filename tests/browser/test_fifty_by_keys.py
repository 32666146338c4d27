"""Fifty tickets settled from the keyboard, and how long the server took."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ..support.deployment import ticket
from .conftest import NewPlace, Seat, apart

pytest.importorskip("playwright.sync_api", reason="pip install 'ticketgate[browser]'")
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.redis]

COUNT = 50
MOST_KEYS = 6


def test_fifty_tickets_are_settled_with_six_keys_each_at_most(
    places: NewPlace, seats: Callable[..., Seat]
) -> None:
    names = [f"T-{number:03}" for number in range(COUNT)]
    place = places(names)
    apart(place.desk.deployment.send, [ticket(name, f"Ticket {name} about a refund.") for name in names])
    apart(place.desk.reviews, COUNT)
    seat = seats(place.console.url)
    seat.sign_in("anna")
    seat.open("/")
    page, keys = seat.page, []
    expect(page.locator("#rows > .row")).not_to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#decide")).to_be_visible()

    for number in range(COUNT):
        before = page.url
        # Most are accepted by the first suggestion, some rejected.
        pressed = ["a", "1", "Enter"] if number % 5 else ["r", "Enter"]
        for key in pressed:
            page.keyboard.press(key)
            if key == "1":
                expect(page.locator("#press-accept")).to_be_focused()
        page.wait_for_url(lambda url, before=before: url != before, timeout=60_000)
        keys.append(len(pressed))

    place.desk.wait_until(lambda: len(apart(place.desk.deployment.committed, "settled")) >= COUNT, 180)
    told = [json.loads(each.value or b"{}") for each in apart(place.desk.deployment.committed, "settled")]
    assert sorted(each["ticket_id"] for each in told) == names
    assert {each["outcome"] for each in told} == {"accepted", "rejected"}
    assert max(keys) <= MOST_KEYS
    print()
    print("server time, 95 of 100 requests, by the console's own histogram:")
    for route, (count, below_s) in sorted(place.console.server_time(0.95).items()):
        print(f"  {route:40} {count:6} requests, below {below_s * 1000:g} ms")
