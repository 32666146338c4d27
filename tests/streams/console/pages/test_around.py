"""What stands around a ticket: its whole case, collisions, notes of people, other kinds, and long texts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.console.desk.console_desk import now_ms
from ticketgate.streams.console.pages import cases
from ticketgate.streams.operations.review.timeline import Event

from ....support.still_desk import StillDesk
from .conftest import Answer, Come
from .test_settling import FRAGMENT, strip, ticket_page


async def test_the_whole_case_is_a_timeline_that_no_page_waits_for(
    still: StillDesk, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = still.lay("T-1")
    may_end = asyncio.Event()

    async def slow(_: Any, __: Any, *, progress: Any) -> list[Event]:
        progress("topics", 10, 40)
        await may_end.wait()
        return [
            Event(1_000, "tickets", Coordinate("tickets", 0, 0), {"id": "T-1", "state": "<b>hello</b>"}),
            Event(3_400, "review", Coordinate("review", 0, 0), record.to_json()),
        ]

    monkeypatch.setattr(cases, "timeline", slow)
    anna = await come()
    page = await anna.get("/case/T-1")
    assert "10 of 40 records" in page.text

    may_end.set()
    done: Answer | None = None
    while done is None or "Reading" in done.text:
        done = await anna.get(f"/case/{record.idempotency_key}/timeline", **FRAGMENT)

    assert "2 records over all topics" in done.text
    assert done.text.index("tickets ticket/1") < done.text.index("review review at policy")
    assert "+2.4 s" in done.text
    assert "<b>hello" not in done.html
    assert still.reads[0]["command"] == "console case"


async def test_what_collides_is_shown_side_by_side(still: StillDesk, come: Come) -> None:
    still.lay("T-1", "the first text")
    still.lay("T-1", "the other text", is_collision=True)
    anna = await come()
    ticket = await anna.get("/ticket/T-1")
    (link,) = [each for each in ticket.links("/ticket/") if "at=" in each]

    page = await anna.get(link)

    assert "Collisions with it" in ticket.text
    assert "the first text" in page.text
    assert "the other text" in page.text
    assert "press-accept" not in page.html


async def test_other_kinds_are_shown_and_not_settled(still: StillDesk, come: Come) -> None:
    still.lay_value(b'{"schema": "case-decision/1", "case_id": "C-1", "verdict": {"reasons": ["no payee"]}}')
    still.lay_value(b'{"schema": "receipt/1", "subject": "C-2", "effect_state": "unknown"}')
    anna = await come()

    found = [await anna.get(f"/?kind={kind}") for kind in ("case", "receipt")]

    for name, page in zip(("C-1", "C-2"), found, strict=True):
        shown = await anna.get(page.links("/ticket/")[0])
        assert name in shown.text
        assert "Decide" not in shown.text


async def test_a_long_text_is_cut_and_shown_whole_where_asked_for(still: StillDesk, come: Come) -> None:
    still.lay("T-1", "word " * 40_000)
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1", "")

    whole = await anna.get(f"{path}?all=1")

    assert len(page.html) < 40_000
    assert "Show all 200,000 characters" in page.text
    assert len(whole.html) > 200_000


async def test_a_deferred_ticket_leaves_the_list_until_it_is_asked_for(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    still.lay("T-2")
    anna = await come()
    path, page = await ticket_page(anna, still, "T-1", "")
    csrf = page.form("reject")["csrf"]

    after = await anna.post(
        f"{path}/defer", {"csrf": csrf, "hours": "24", "why": "asked the sender", "query": ""}
    )
    listed = await anna.get("/")
    with_it = await anna.get("/?deferred=1")
    _, again = await ticket_page(anna, still, "T-1", "")

    assert "T-2" in after.text
    assert "T-1" not in listed.text
    assert "1 deferred: show" in listed.text
    assert "deferred until" in with_it.text
    assert "Deferred by anna until" in again.text
    assert "asked the sender" in again.text
    await anna.post(f"{path}/defer", {"csrf": csrf, "hours": "0", "query": ""})
    assert "T-1" in (await anna.get("/")).text


async def test_who_looks_is_told_to_others_and_forgotten(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    anna, ben = await come(), await come("ben")
    path, _ = await ticket_page(anna, still, "T-1", "")

    listed = await ben.get("/")
    asked = await ben.get(path)
    still.desk.notes.forget_before(now_ms() + 60_000)
    later = await ben.get("/")

    assert "anna looks at this" in listed.text
    assert "anna looks at this too" in asked.text
    assert "looks at this" not in later.text


async def test_news_tell_what_is_new_and_what_is_gone(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    anna = await come()
    with still.view() as view:
        newest = view.newest_id()
    async with anna.client.get(f"/news?since={newest}&place=review:0:0") as stream:
        first = await stream.content.readuntil(b"\n\n")
        still.lay("T-2", hours_old=0)
        still.desk.on_news()
        second = await stream.content.readuntil(b"\n\n")

    assert b'"new":0' in first
    assert b'"new":1' in second
    assert stream.content_type == "text/event-stream"


async def test_a_ticket_that_several_tenants_have_is_not_guessed(still: StillDesk, come: Come) -> None:
    still.lay("T-1", tenant="north")
    still.lay("T-1", tenant="south")
    anna = await come()

    page = await anna.get("/ticket/T-1")

    assert page.status == 409
    assert "Open one by its key" in page.text
    assert (await anna.get("/ticket/T-9")).status == 404


async def test_a_broker_that_is_away_is_told_on_the_page(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    still.topics.is_away = True
    anna = await come()

    _, page = await ticket_page(anna, still, "T-1", "")

    assert page.status == 503
    assert "The broker does not answer" in page.text
    assert await strip(anna) == ""
