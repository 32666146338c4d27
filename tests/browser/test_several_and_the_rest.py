"""Several tickets settled at once, a ticket's whole case, dead letters and open effects: in a browser."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest
from ticketgate.streams.config.settings import load_settings

from ..streams.cli.test_effects import leave_open
from ..support.deployment import Sent, ticket
from ..support.desk import RIGHT
from .conftest import NewPlace, Place, Seat, apart

pytest.importorskip("playwright.sync_api", reason="pip install 'ticketgate[browser]'")
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.redis]

MOST = 200
NAMES = [f"n{number:03}" for number in range(MOST + 5)]


@pytest.fixture(scope="module")
def place(places: NewPlace) -> Place:
    """More tickets wait than are settled at once; one record could not be read, and one effect is open."""
    place = places([*NAMES, "late"])
    deployment = place.desk.deployment
    records = [ticket(name, f"Ticket {name} about a refund.") for name in NAMES]
    apart(deployment.send, [*records, Sent(b"no JSON", key=b"bad")])
    apart(place.desk.reviews, len(NAMES))
    apart(leave_open, load_settings(environment=deployment.environment).settings, "an-effect")
    return place


@pytest.fixture
def anna(place: Place, seats: Callable[..., Seat]) -> Seat:
    """Signed in, with the list before her."""
    seat = seats(place.console.url)
    seat.sign_in("anna")
    seat.open("/")
    return seat


def frozen(seat: Seat, action: str, *names: str) -> int:
    """Freeze the rows of these names, or all of the list; how many would be settled."""
    page = seat.page
    for name in names:
        page.locator(f"#rows > .row:has(.id:text-is('{name}')) input[type=checkbox]").check()
    page.locator(f"form#bulk input[name=all][value='{'' if names else 1}']").check()
    page.locator(f"form#bulk button[value={action}]").click()
    # Looked at one by one.
    expect(page.locator("#bulk-list [role=status]")).to_have_count(0, timeout=120_000)
    return page.locator("form.bulk-press ~ ol").first.locator("li").count()


def press(seat: Seat, count: int | str) -> None:
    """All of the frozen list, having typed how many they are."""
    seat.page.locator("input[name=count]").fill(str(count))
    seat.page.locator("form.bulk-press button.main").click()


def outcomes(place: Place) -> dict[str, list[str]]:
    """What became of the settlements, by ticket."""
    found: dict[str, list[str]] = {}
    for each in apart(place.desk.deployment.committed, "settled"):
        told = json.loads(each.value or b"{}")
        found.setdefault(told["ticket_id"], []).append(told["outcome"])
    return found


def test_selected_tickets_are_accepted_with_labels_and_effects_that_were_shown(
    place: Place, anna: Seat
) -> None:
    page = anna.page
    assert frozen(anna, "accept", *NAMES[:2]) == 0
    expect(page.locator("#bulk-list")).to_contain_text("2 tickets left out")
    page.locator("input[name=chosen][value='1']").check()
    for each in RIGHT:
        page.locator(f"[name='q:{each}'][value='{each}']").check()
    page.locator("form.labels-form button").click()
    expect(page.locator("#bulk-list")).to_contain_text("2 tickets would be settled", timeout=120_000)
    expect(page.locator("#bulk-list")).to_contain_text("Effects: 2 x assign_queue")

    press(anna, 2)

    expect(page.locator("#strip .stage-accepted")).to_be_visible(timeout=120_000)
    assert [outcomes(place)[name] for name in NAMES[:2]] == [["accepted"], ["accepted"]]
    dispatched = Counter(each["ticket_id"] for each in apart(place.desk.dispatched))
    assert [dispatched[name] for name in NAMES[:2]] == [1, 1]
    anna.require_no_fault()


def test_nothing_is_pressed_by_a_wrong_count_and_what_was_pressed_is_taken_back_together(
    place: Place, anna: Seat
) -> None:
    names = NAMES[2:4]
    assert frozen(anna, "reject", *names) == 2
    page = anna.page

    press(anna, 3)
    expect(page.get_by_role("heading", level=1)).to_contain_text("The number is not 2")
    page.go_back()
    press(anna, 2)
    page.locator("#strip button.take-back").first.click()

    expect(page.locator("#strip .stage-taken_back").first).to_be_visible()
    anna.open("/presses")
    assert page.locator("#main [data-said$=' taken_back']").count() == 1
    sent = [json.loads(each.value or b"{}") for each in apart(place.desk.deployment.committed, "settlements")]
    assert {each["ticket_id"] for each in sent}.isdisjoint(names)


def test_a_whole_list_is_frozen_at_its_most_and_what_comes_later_is_not_in_it(
    place: Place, anna: Seat
) -> None:
    before = outcomes(place)
    assert frozen(anna, "reject") == MOST
    expect(anna.page.locator("main")).to_contain_text("the list had more")
    listed = anna.page.locator("#bulk-list ol.lines .id").all_inner_texts()
    apart(place.desk.deployment.send, [ticket("late", "A refund, later.")])
    apart(place.desk.reviews, len(NAMES) + 1)

    press(anna, MOST)

    place.desk.wait_until(lambda: len(outcomes(place)) - len(before) == MOST, 300)
    after = {name: told for name, told in outcomes(place).items() if name not in before}
    assert after == {name: ["rejected"] for name in listed}
    assert "late" not in after
    anna.require_no_fault()


def test_a_case_is_told_over_all_topics_in_its_order(place: Place, anna: Seat) -> None:
    page = anna.page
    anna.open(f"/case/{NAMES[0]}")

    expect(page.locator("#timeline")).to_have_attribute("aria-busy", "false", timeout=120_000)
    prefix = place.desk.deployment.topic("")
    told = page.locator("#timeline ol.timeline > li .topic").all_inner_texts()
    topics = [each.removeprefix(prefix) for each in told]

    assert topics[0] == "tickets"
    assert {"review", "settlements", "settled", "dispatch"} <= set(topics)
    times = page.locator("#timeline .when time").all_inner_texts()
    assert times == sorted(times)
    page.locator("#timeline details summary").first.click()
    expect(page.locator("#timeline pre").first).to_contain_text("about a refund.")
    anna.require_no_fault()


def test_a_dead_letter_is_looked_at_before_it_would_be_sent_again(place: Place, anna: Seat) -> None:
    page = anna.page
    anna.open("/dead-letters")
    expect(page.locator("#letters")).to_have_attribute("aria-busy", "false", timeout=120_000)
    expect(page.locator("#letters tbody tr")).to_have_count(1)

    page.locator("#letters input[name=place]").check()
    page.locator("#letters button.main").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Send again?")
    expect(page.locator("main")).to_contain_text("held back")
    expect(page.locator("main")).to_contain_text("mend them by the command")
    anna.require_no_fault()


def test_an_open_effect_is_settled_by_a_persons_word_with_its_reason(place: Place, anna: Seat) -> None:
    page = anna.page
    anna.open("/effects")
    card = page.locator(".card")
    expect(card).to_contain_text("pay")

    card.locator("summary").click()
    card.locator("select[name=state]").select_option("committed")
    card.locator("input[name=reason]").fill("The bank's statement has it.")
    card.get_by_role("button", name="Settle").click()

    expect(page.locator(".banner[role=status]")).to_contain_text("Settled by your word")
    expect(page.locator(".empty")).to_contain_text("Nothing is open")
    anna.require_no_fault()
