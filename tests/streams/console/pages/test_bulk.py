"""Several at once: a frozen list, each bound to its own record, the count asked for, all taken back together."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ticketgate.streams.console.desk import presses as presses_module

from ....support.desk import RIGHT
from ....support.still_desk import StillDesk
from .conftest import Answer, Browser, Come
from .test_settling import CHOICE, FRAGMENT, until

GOOD = {"urgent": 0.9, "review": 0.9, "auto_reply": 0.2, "billing": 0.8, "technical": 0.1}


async def csrf_of(browser: Browser) -> str:
    found = re.search(r'<meta name="csrf" content="([^"]+)"', (await browser.get("/presses")).html)
    assert found is not None
    return found[1]


async def frozen(browser: Browser, action: str, **form: Any) -> Answer:
    """The page of a list that was just frozen, once all is looked at."""
    page = await browser.post(
        "/bulk", {"csrf": await csrf_of(browser), "action": action, "query": "", **form}
    )
    return await looked_at(browser, page)


async def looked_at(browser: Browser, page: Answer) -> Answer:
    for _ in range(200):
        if "Looking at" not in page.text:
            return page
        page = await browser.get(page.url)
    raise AssertionError(page.text)


def press_form(page: Answer) -> dict[str, Any]:
    pairs = re.findall(
        r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.html[page.html.index("/press") :]
    )
    form: dict[str, Any] = {name: value for name, value in pairs if name != "label"}
    return form | {"label": [value for name, value in pairs if name == "label"]}


async def test_a_frozen_list_is_rejected_each_by_a_settlement_of_its_own(
    still: StillDesk, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presses_module, "TAKE_BACK_S", 0.0)
    records = [still.lay(f"T-{number}", hours_old=9 - number) for number in range(3)]
    anna = await come()
    page = await frozen(anna, "reject", all="1")
    still.lay("T-later", hours_old=0.1)
    assert "3 tickets would be settled" in page.text

    await anna.post(f"{page.url}/press", press_form(page) | {"count": "3", "why": "spam"})
    await until(lambda: len(still.sender.sent) == 3)

    assert {each.key for each in still.sender.sent} == {each.idempotency_key for each in records}
    assert {each.why for each in still.sender.sent} == {"spam"}
    assert len({each.id for each in still.sender.sent}) == 3


async def test_what_is_accepted_has_its_effects_listed_and_the_rest_is_left_out(
    still: StillDesk, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presses_module, "TAKE_BACK_S", 0.0)
    still.lay("T-good", answers=GOOD)
    still.lay("T-broken")
    anna = await come()
    page = await frozen(anna, "accept", all="1")
    assert "1 ticket would be settled" in page.text
    assert "Effects: 1 x assign_queue" in page.text
    assert "1 ticket left out" in page.text
    assert "urgent requires review" in page.text

    both = await looked_at(anna, await anna.get(f"{page.url}?{CHOICE}"))
    assert "2 tickets would be settled" in both.text
    await anna.post(f"{both.url.partition('?')[0]}/press", press_form(both) | {"count": "2"})
    await until(lambda: len(still.sender.sent) == 2)

    assert {each.labels for each in still.sender.sent} == {RIGHT}


@pytest.mark.parametrize("change", [{"count": "1"}, {"count": ""}, {"digest": "0" * 64}])
async def test_without_the_count_or_with_another_list_nothing_is_pressed(
    still: StillDesk, come: Come, change: dict[str, str]
) -> None:
    still.lay("T-1")
    still.lay("T-2")
    anna = await come()
    page = await frozen(anna, "reject", all="1")

    refused = await anna.post(f"{page.url}/press", {**press_form(page), "count": "2", **change})

    assert refused.status in (400, 409)
    assert still.desk.notes.at_stage("pressed") == []  # type: ignore[arg-type]


async def test_all_of_them_are_taken_back_together(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    still.lay("T-2")
    anna = await come()
    page = await frozen(anna, "reject", place=["review:0:0", "review:0:1"])
    await anna.post(f"{page.url}/press", press_form(page) | {"count": "2"})
    strip = await anna.get("/presses/strip", **FRAGMENT)
    (batch,) = set(re.findall(r"/presses/([0-9a-f-]+)/take-back", strip.html))

    after = await anna.post(f"/presses/{batch}/take-back", {"csrf": await csrf_of(anna)}, **FRAGMENT)

    assert "taken back" in after.text
    assert len(still.desk.notes.at_stage("taken_back")) == 2  # type: ignore[arg-type]


async def test_at_most_200_are_settled_at_once_and_a_list_is_its_persons_own(
    still: StillDesk, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ticketgate.streams.console.pages import bulk

    monkeypatch.setattr(bulk, "MOST_TICKETS", 2)
    for number in range(3):
        still.lay(f"T-{number}")
    anna, cleo = await come(), await come("cleo")

    page = await frozen(anna, "reject", all="1")

    assert "2 tickets would be settled" in page.text
    assert "the list had more" in page.text
    assert (await cleo.get(page.url)).status == 404
