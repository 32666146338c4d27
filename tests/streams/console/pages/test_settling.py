"""Presses: bound to what was shown, taken back for five seconds, sent once, and told as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from ticketgate.agents.settling.console_keys import load_console_keys
from ticketgate.agents.settling.signing import refuse_signature
from ticketgate.streams.console.desk import presses as presses_module
from ticketgate.streams.console.desk.console_desk import now_ms

from ....support.desk import RIGHT
from ....support.still_desk import StillDesk
from .conftest import Answer, Browser, Come

FRAGMENT = {"HX-Request": "true"}
CHOICE = "&".join(["chosen=1", *(f"q%3A{each}={each}" for each in RIGHT)])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pressed is due at once."""
    monkeypatch.setattr(presses_module, "TAKE_BACK_S", 0.0)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - of many kinds
            await asyncio.sleep(0.01)


async def ticket_page(
    browser: Browser, still: StillDesk, name: str, query: str = CHOICE
) -> tuple[str, Answer]:
    with still.view() as view:
        (case, *_) = view.find(name, now_ms=now_ms())
    path = f"/ticket/{case.key}"
    return path, await browser.get(f"{path}?{query}")


async def strip(browser: Browser) -> str:
    return (await browser.get("/presses/strip", **FRAGMENT)).text


async def test_labels_are_chosen_their_effects_shown_and_accepted(
    still: StillDesk, come: Come, at_once: None
) -> None:
    record = still.lay("T-1")
    still.lay("T-2")
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1")
    assert "assign_queue" in page.text

    after = await anna.post(f"{path}/settle", {**page.form("accept"), "why": "seen the invoice"})
    await until(lambda: bool(still.sender.sent))

    (sent,) = still.sender.sent
    assert (sent.action, sent.labels, sent.why) == ("accept", RIGHT, "seen the invoice")
    assert sent.key == record.idempotency_key
    keys = load_console_keys(still.settings.console_keys or Path())
    assert refuse_signature(sent, keys, at=sent.at) is None
    assert "T-2" in after.text
    assert "a worker has not told yet" in await strip(anna)

    still.tell(sent, "accepted")
    await until(lambda: still.desk.notes.press(sent.id).stage == "told")  # type: ignore[union-attr]
    assert "accept T-1 accepted" in await strip(anna)


async def test_rejecting_and_returning_send_no_labels(still: StillDesk, come: Come, at_once: None) -> None:
    for name in ("T-1", "T-2"):
        still.lay(name)
    anna = await come()

    for name, action in (("T-1", "reject"), ("T-2", "return")):
        path, page = await ticket_page(anna, still, name)
        await anna.post(f"{path}/settle", {**page.form(action), "why": ""})
    await until(lambda: len(still.sender.sent) == 2)

    assert [(each.action, each.labels) for each in still.sender.sent] == [("reject", ()), ("return", ())]


async def test_what_is_taken_back_is_never_sent(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    anna, ben = await come(), await come("cleo")
    path, page = await ticket_page(anna, still, "T-1")
    form = page.form("reject")
    await anna.post(f"{path}/settle", form)
    csrf = {"csrf": form["csrf"]}
    assert "not sent yet" in await strip(anna)

    _, theirs = await ticket_page(ben, still, "T-1")
    other = await ben.post(f"/presses/{form['id']}/take-back", {"csrf": theirs.form("reject")["csrf"]})
    mine = await anna.post(f"/presses/{form['id']}/take-back", csrf, **FRAGMENT)
    again = await anna.post(f"/presses/{form['id']}/take-back", csrf)

    assert other.status == 404
    assert "taken back" in mine.text
    assert again.status == 409
    assert still.desk.notes.press(form["id"]).stage == "taken_back"  # type: ignore[union-attr]
    assert still.sender.sent == []


async def test_after_five_seconds_there_is_no_way_back(still: StillDesk, come: Come, at_once: None) -> None:
    still.lay("T-1")
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1")
    form = page.form("reject")
    await anna.post(f"{path}/settle", form)
    await until(lambda: bool(still.sender.sent))

    late = await anna.post(f"/presses/{form['id']}/take-back", {"csrf": form["csrf"]})

    assert late.status == 409
    assert "too late" in late.text


async def test_pressing_twice_is_one_press_and_two_people_cannot_press_at_once(
    still: StillDesk, come: Come
) -> None:
    still.lay("T-1")
    anna, cleo = await come(), await come("cleo")
    path, page = await ticket_page(anna, still, "T-1")
    _, theirs = await ticket_page(cleo, still, "T-1")
    assert "anna looks at this too" in theirs.text

    first = await anna.post(f"{path}/settle", page.form("reject"))
    second = await anna.post(f"{path}/settle", page.form("reject"))
    other = await cleo.post(f"{path}/settle", theirs.form("accept"))

    assert (first.status, second.status, other.status) == (200, 200, 409)
    assert "under way already" in other.text
    assert len(still.desk.notes.at_stage("pressed")) == 1  # type: ignore[arg-type]
    _, seen = await ticket_page(cleo, still, "T-1")
    assert "anna pressed reject on this" in seen.text


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "0" * 64},
        {"place": "review:9:9"},
        {"policy": "0" * 64},
        {"effects": "0" * 64},
        {"label": ["urgent"]},
        {"label": ["unheard-of"]},
        {"action": "burn"},
        {"id": "x"},
    ],
)
async def test_what_was_not_shown_is_not_pressed(
    still: StillDesk, come: Come, change: dict[str, object]
) -> None:
    still.lay("T-1")
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1")

    refused = await anna.post(f"{path}/settle", {**page.form("accept"), **change})

    assert refused.status in (400, 409)
    assert still.desk.notes.opened(["review:0:0"]) == {}


async def test_who_only_reads_presses_nothing(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    anna, ben = await come(), await come("ben")
    path, page = await ticket_page(anna, still, "T-1")
    _, theirs = await ticket_page(ben, still, "T-1")

    refused = await ben.post(f"{path}/settle", page.form("reject"))

    assert "settling needs the role" in theirs.text
    assert refused.status == 403
    assert still.desk.notes.opened(["review:0:0"]) == {}


async def test_labels_that_the_policy_refuses_cannot_be_pressed(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    anna = await come()

    _, page = await ticket_page(anna, still, "T-1", "chosen=1&q%3Aurgent=urgent")

    assert "The policy would not accept these labels" in page.text
    assert 'id="press-accept"' not in page.html


async def test_a_broken_policy_takes_away_accepting_alone(
    still: StillDesk, come: Come, tmp_path: Path, at_once: None
) -> None:
    still.lay("T-1")
    (tmp_path / "policy.toml").write_text("name = ")
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1")
    assert "cannot be accepted now" in page.text
    assert "policy.toml" in page.text

    await anna.post(f"{path}/settle", page.form("reject"))
    await until(lambda: bool(still.sender.sent))


async def test_a_ticket_without_text_can_only_be_rejected_or_returned(still: StillDesk, come: Come) -> None:
    still.lay("T-1", with_text=False)
    anna = await come()

    _, page = await ticket_page(anna, still, "T-1")

    assert "The text is nowhere any more." in page.text
    assert 'id="press-accept"' not in page.html
    assert page.form("return")["action"] == "return"


async def test_a_broker_that_is_away_is_told_and_the_same_bytes_are_sent_later(
    still: StillDesk, come: Come, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presses_module, "RETRY_S", 0.01)
    still.lay("T-1")
    still.sender.is_away = True
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1")
    form = page.form("reject")
    await anna.post(f"{path}/settle", form)
    await until(lambda: "no broker answers" in still.desk.notes.press(form["id"]).reason)  # type: ignore[union-attr]
    assert "sending" in await strip(anna)
    signed = still.desk.notes.press(form["id"]).signed  # type: ignore[union-attr]

    still.sender.is_away = False
    await until(lambda: bool(still.sender.sent))

    assert still.sender.sent[0].encode() == signed


async def test_what_a_worker_did_not_take_waits_as_before_and_can_be_pressed_again(
    still: StillDesk, come: Come, at_once: None
) -> None:
    still.lay("T-1")
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1")
    await anna.post(f"{path}/settle", page.form("accept"))
    await until(lambda: bool(still.sender.sent))
    still.tell(still.sender.sent[0], "void", "effects_differ", ["the policy has changed since it was shown"])
    await until(lambda: still.desk.notes.opened(["review:0:0"]) == {})
    assert "not taken; it waits as before the policy has changed" in await strip(anna)

    path, page = await ticket_page(anna, still, "T-1")
    await anna.post(f"{path}/settle", page.form("accept"))
    await until(lambda: len(still.sender.sent) == 2)
