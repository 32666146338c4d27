"""How pages look, and what programs read of them: pictures at three widths in both themes, axe, headers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ticketgate.streams.config.settings import load_settings

from ..streams.cli.test_effects import leave_open
from ..support.deployment import Sent, ticket
from .conftest import NewPlace, Place, Seat, apart

pytest.importorskip("playwright.sync_api", reason="pip install 'ticketgate[browser]'")
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.redis]

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "streams/console/pictures"
WIDTHS = {"phone": 390, "tablet": 820, "desktop": 1280}
THEMES = ("light", "dark")
TEXTS = {
    "T-1001": "I was charged twice for order 7731 in October, and nobody has answered my last two letters.",
    "T-1002": "Please cancel my plan today. The app says that the payment failed, my bank that it did not.",
    "T-1003": "Der Rechnungsbetrag stimmt nicht. Bitte um Rückruf.",
    "T-1004": "\u05d4\u05d7\u05e9\u05d1\u05d5\u05e0\u05d9\u05ea \u05dc\u05d0 \u05d4\u05d2\u05d9\u05e2\u05d4",
    "T-1005": "Refund for the broken charger, order 8112.",
}
PAGES = {
    "list": "/",
    "ticket": "/ticket/T-1001",
    "presses": "/presses",
    "case": "/case/T-1001",
    "dead-letters": "/dead-letters",
    "effects": "/effects",
    "nothing": "/nowhere",
}


@pytest.fixture(scope="module")
def place(places: NewPlace) -> Place:
    """Five tickets wait, one record could not be read, and of one effect nothing is known."""
    place = places(list(TEXTS))
    deployment = place.desk.deployment
    records = [ticket(name, text, tenant="acme") for name, text in TEXTS.items()]
    apart(deployment.send, [*records, Sent(b"no JSON", key=b"T-1006")])
    apart(place.desk.reviews, len(TEXTS))
    apart(leave_open, load_settings(environment=deployment.environment).settings, "acme/T-0990/pay")
    return place


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_keeps_anybody_out_and_none_is_wider_than_its_window(
    place: Place, seats: Callable[..., Seat], tmp_path: Path, theme: str, width: str
) -> None:
    seat = seats(place.console.url, width=WIDTHS[width], theme=theme)
    folder = PICTURES if os.environ.get("KEEP_PICTURES") else tmp_path
    folder.mkdir(exist_ok=True)
    found: dict[str, list[str]] = {}
    seat.page.goto(place.console.url + "/sign-in")
    found["sign-in"] = looked_at(seat, folder / f"sign-in-{width}-{theme}.png")
    seat.sign_in("anna")
    for name, path in PAGES.items():
        seat.open(path)
        if name == "ticket":
            seat.page.keyboard.press("a")
            seat.page.keyboard.press("1")
            expect(seat.page.locator("#press-accept")).to_be_enabled()
        expect(seat.page.locator("[aria-busy=true]")).to_have_count(0, timeout=120_000)
        if name in ("case", "effects"):
            seat.page.locator("details summary").last.click()
        found[name] = looked_at(seat, folder / f"{name}-{width}-{theme}.png")
    for action in ("accept", "reject"):
        seat.open("/")
        seat.page.locator("form#bulk input[name=all][value='1']").check()
        seat.page.locator(f"form#bulk button[value={action}]").click()
        expect(seat.page.locator("#bulk-list [role=status]")).to_have_count(0, timeout=120_000)
        found[f"bulk-{action}"] = looked_at(seat, folder / f"bulk-{action}-{width}-{theme}.png")
    seat.open("/dead-letters")
    expect(seat.page.locator("[aria-busy=true]")).to_have_count(0, timeout=120_000)
    seat.page.locator("#letters input[name=place]").check()
    seat.page.locator("#letters button.main").click()
    expect(seat.page.get_by_role("heading", level=1)).to_have_text("Send again?")
    found["send-again"] = looked_at(seat, folder / f"send-again-{width}-{theme}.png")
    seat.open("/")
    seat.page.keyboard.press("?")
    expect(seat.page.locator("#help")).to_be_visible()
    found["keys"] = looked_at(seat, folder / f"keys-{width}-{theme}.png")

    assert {name: faults for name, faults in found.items() if faults} == {}


def looked_at(seat: Seat, picture: Path) -> list[str]:
    """Take the picture; what axe finds, and whether anything is to be scrolled sideways."""
    seat.page.screenshot(path=str(picture))
    response = Axe().run(seat.page).response
    faults = [
        f"{each['id']}: {node['html'][:120]} ({node['any'][0]['message'] if node['any'] else each['help']})"
        for each in response["violations"]
        for node in each["nodes"]
    ]
    if seat.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        faults.append("wider than its window")
    return faults


def test_every_page_says_what_it_may_load_and_nothing_is_kept(
    place: Place, seats: Callable[..., Seat]
) -> None:
    seat = seats(place.console.url)
    answers: list[Any] = []
    seat.page.on("response", lambda response: answers.append(response))

    seat.sign_in("anna")
    for path in PAGES.values():
        seat.open(path)

    assert len(answers) > len(PAGES)
    for each in answers:
        headers = each.headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        is_static = re.search(r"/static/[0-9a-f]{16}/", each.url) is not None
        assert ("immutable" if is_static else "no-store") in headers["cache-control"]
    # The page that is not there is said by the browser itself.
    assert [each for each in seat.faults if "404" not in each] == []
    assert [each for each in seat.asked if not each.startswith(seat.url)] == []
