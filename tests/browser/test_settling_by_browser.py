"""What people do on the pages, in a browser, on a real worker: list, filter, open, settle each way, together."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ..support.deployment import ticket
from .conftest import NewPlace, Place, Seat, apart

pytest.importorskip("playwright.sync_api", reason="pip install 'ticketgate[browser]'")
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.redis]

HOSTILE_ID = '"><script>window.pwned=1</script>'
MARKUP = "<img src=x onerror=window.pwned=1><svg onload=window.pwned=1>{{7*7}}</textarea></script>"
RIGHT_TO_LEFT = "\u202egnp.exe\u202c \u05e9\u05dc\u05d5\u05dd \u2066hidden\u2069"
LONG = "a very long complaint about a refund. " * 5_400
TICKETS = ["accept", "reject", "return", "back", "race", "defer", HOSTILE_ID, "rtl", "long"]


@pytest.fixture(scope="module")
def place(places: NewPlace) -> Place:
    """Nine tickets wait."""
    place = places(TICKETS)
    texts = {HOSTILE_ID: MARKUP, "rtl": RIGHT_TO_LEFT, "long": LONG}
    records = [
        ticket(name, texts.get(name, f"Ticket {name} about a refund."), attributes={"note": MARKUP})
        for name in TICKETS
    ]
    apart(place.desk.deployment.send, records)
    apart(place.desk.reviews, len(TICKETS))
    return place


@pytest.fixture
def anna(place: Place, seats: Callable[..., Seat]) -> Seat:
    """Signed in, with the list before her once all wait in it."""
    seat = seats(place.console.url)
    seat.sign_in("anna")
    seat.open("/")
    return seat


def outcome(place: Place, name: str) -> list[str]:
    """What became of the settlements of a ticket."""
    told = [json.loads(each.value or b"{}") for each in apart(place.desk.deployment.committed, "settled")]
    return sorted(each["outcome"] for each in told if each["ticket_id"] == name)


def wait_for(place: Place, name: str, *wanted: str) -> None:
    place.desk.wait_until(lambda: outcome(place, name) == sorted(wanted))


def pressed(seat: Seat, action: str) -> None:
    """By its button; accepting by the first suggestion."""
    page = seat.page
    page.keyboard.press({"accept": "a", "reject": "r", "return": "b", "defer": "d"}[action])
    if action == "accept":
        page.keyboard.press("1")
        expect(page.locator("#press-accept")).to_be_enabled()
        page.locator("#press-accept").click()
    else:
        page.locator(f"details#{action} button.main").click()


def test_what_waits_is_listed_and_narrowed_by_links(place: Place, anna: Seat) -> None:
    page = anna.page
    expect(page.locator("#rows > .row")).to_have_count(len(TICKETS))
    page.locator("aside.filters a").first.click()
    expect(page.locator("a.given").first).to_be_visible()
    page.locator("a.given").first.click()
    page.locator("#search").fill("reject refund")
    page.keyboard.press("Enter")

    expect(page.locator("#rows > .row")).to_have_count(1)
    expect(page.locator("#rows > .row .id")).to_have_text("reject")
    anna.require_no_fault()


@pytest.mark.parametrize(
    ("action", "told"), [("accept", "accepted"), ("reject", "rejected"), ("return", "returned")]
)
def test_a_ticket_is_settled_each_way_and_the_page_says_how_far_it_is(
    place: Place, anna: Seat, action: str, told: str
) -> None:
    anna.open(f"/ticket/{action}")

    pressed(anna, action)

    strip = anna.page.locator("#strip")
    expect(strip).to_contain_text(action)
    wait_for(place, action, told)
    expect(strip.locator(f".stage-{told}")).to_be_visible()
    anna.open(f"/ticket/{action}")
    expect(anna.page.locator("#decide")).to_contain_text(told)
    dispatched = [each["ticket_id"] for each in apart(place.desk.dispatched)]
    assert dispatched.count(action) == (1 if action == "accept" else 0)
    anna.require_no_fault()


def test_a_press_is_taken_back_and_nothing_was_sent(place: Place, anna: Seat) -> None:
    anna.open("/ticket/back")

    pressed(anna, "reject")
    anna.page.locator("#strip button.take-back").first.click()

    expect(anna.page.locator("#strip .stage-taken_back")).to_be_visible()
    anna.open("/ticket/back")
    expect(anna.page.locator("details#reject")).to_be_visible()
    sent = [json.loads(each.value or b"{}") for each in apart(place.desk.deployment.committed, "settlements")]
    assert "back" not in [each["ticket_id"] for each in sent]


def test_a_deferred_ticket_waits_out_of_sight_and_can_be_shown(place: Place, anna: Seat) -> None:
    anna.open("/ticket/defer")

    pressed(anna, "defer")

    anna.open("/")
    assert "defer" not in anna.page.locator("#rows .id").all_inner_texts()
    anna.open("/?deferred=1")
    assert "defer" in anna.page.locator("#rows .id").all_inner_texts()
    assert outcome(place, "defer") == []


def test_of_two_people_who_press_at_once_one_settles_and_the_other_is_told(
    place: Place, seats: Callable[..., Seat]
) -> None:
    one, other = seats(place.console.url), seats(place.console.url)
    for seat, name in ((one, "anna"), (other, "ben")):
        seat.sign_in(name)
        seat.open("/ticket/race")
    expect(other.page.locator("#meanwhile")).to_contain_text("anna", timeout=90_000)

    pressed(one, "accept")
    pressed(other, "reject")

    expect(other.page.get_by_role("heading", level=1)).to_contain_text(
        "A press on this ticket is under way already"
    )
    wait_for(place, "race", "accepted")
    assert [each["ticket_id"] for each in apart(place.desk.dispatched)].count("race") == 1


@pytest.mark.parametrize(("name", "text"), [(HOSTILE_ID, MARKUP), ("rtl", "gnp.exe"), ("long", LONG[:100])])
def test_what_a_ticket_says_is_text_and_nothing_else(place: Place, anna: Seat, name: str, text: str) -> None:
    from urllib.parse import quote

    page = anna.page
    anna.open("/")
    page.goto(f"{place.console.url}/ticket/{quote(name, safe='')}")

    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    expect(page.locator("main")).to_contain_text(text)
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main svg[onload], main script").count() == 0
    if name == "rtl":
        assert "\u202e" not in page.locator("main").inner_text()
    anna.require_no_fault()


def test_a_person_who_only_reads_sees_no_button_and_is_refused(
    place: Place, seats: Callable[..., Seat]
) -> None:
    rita = seats(place.console.url)
    rita.sign_in("rita")
    rita.open("/ticket/long")

    expect(rita.page.locator("#decide")).to_contain_text("Your role reads")
    assert rita.page.locator("form.press").count() == 0
    status = rita.page.evaluate(
        """async () => (await fetch("/ticket/long/settle", {method: "POST",
           headers: {"X-CSRF-Token": document.querySelector("meta[name=csrf]").content}})).status"""
    )
    assert status == 403


def test_whose_session_ended_signs_in_and_comes_back_to_where_they_were(place: Place, anna: Seat) -> None:
    anna.open("/ticket/long")
    anna.page.context.clear_cookies()

    anna.page.reload()

    expect(anna.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    anna.page.get_by_label("Name").fill("anna")
    anna.page.get_by_label("Token").fill("the token of anna")
    anna.page.get_by_role("button", name="Sign in").click()
    expect(anna.page).to_have_url(f"{place.console.url}/ticket/long")


def test_an_empty_queue_says_so_and_a_policy_that_broke_keeps_nobody_from_rejecting(
    places: NewPlace, seats: Callable[..., Seat]
) -> None:
    place = places(["only"])
    seat = seats(place.console.url)
    seat.sign_in("anna")
    seat.open("/")
    expect(seat.page.locator(".empty")).to_contain_text("Nothing waits here")

    apart(place.desk.deployment.send, [ticket("only", "A refund.")])
    expect(seat.page.locator("#news a")).to_contain_text("1 new", timeout=90_000)
    seat.page.locator("#news a").click()
    expect(seat.page.locator("#rows > .row")).to_have_count(1)
    (place.desk.folder / "policy.toml").write_text("this is no policy")
    seat.page.wait_for_timeout(3_000)
    seat.open("/ticket/only")
    expect(seat.page.locator("#accepting")).to_contain_text("It cannot be accepted now")
    pressed(seat, "reject")
    wait_for(place, "only", "rejected")


def test_a_view_that_was_lost_is_made_again_and_says_so(place: Place, seats: Callable[..., Seat]) -> None:
    place.console.kill()
    for each in place.desk.folder.glob("view.sqlite3*"):
        each.unlink()
    place.console.start()
    seat = seats(place.console.url)

    seat.sign_in("anna")
    seat.open("/?state=accepted")

    expect(seat.page.locator("#rows .id").filter(has_text="accept")).to_have_count(1)
