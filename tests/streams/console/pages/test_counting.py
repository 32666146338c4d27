"""What waits, as metrics of the console that keeps a view of it."""

from __future__ import annotations

import asyncio

import pytest
from ticketgate.streams.console.desk import counting
from ticketgate.streams.operations.review.rows import Case, Told

from ....support.still_desk import StillDesk
from .conftest import Browser, Come

HOUR_S = 3600


async def measured(browser: Browser, name: str) -> float | None:
    page = (await browser.get("/metrics")).html
    return next(
        (float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name + " ")), None
    )


async def until(browser: Browser, name: str, wanted: float | None) -> None:
    async with asyncio.timeout(30):
        while await measured(browser, name) != wanted:  # noqa: ASYNC110 - as whoever scrapes it
            await asyncio.sleep(0.01)


async def test_what_waits_and_how_long_is_measured_and_goes_with_the_view(
    still: StillDesk, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "PAUSE_S", 0.01)
    ttl_h = still.settings.claim_ttl.total_seconds() / HOUR_S
    still.lay("T-old", hours_old=30)
    still.lay("T-new")
    still.lay("T-over", hours_old=ttl_h + 1)
    still.lay("T-same", is_collision=True, hours_old=90)
    anna = await come()

    await until(anna, 'ticketgate_review_records{state="waiting"}', 2)
    expired = await measured(anna, 'ticketgate_review_records{state="expired"}')
    oldest_s = await measured(anna, "ticketgate_review_oldest_seconds")
    known = await measured(anna, "ticketgate_review_known")
    still.be(about=None)
    still.desk.on_news()
    await until(anna, 'ticketgate_review_records{state="waiting"}', None)

    assert expired == 1
    assert oldest_s is not None
    assert 30 * HOUR_S <= oldest_s < 31 * HOUR_S
    assert known == 1
    assert await measured(anna, "ticketgate_review_known") == 0


def told(of: Case) -> Told:
    return Told(
        coordinate="settlements:0:0", id="s", key=of.key, review=of.place, action="reject", by="p-1",
        at_ms=of.at_ms, outcome="rejected", code="", reasons=(), labels=(),
    )  # fmt: skip


async def test_what_is_settled_waits_no_more_in_the_metrics_either(
    still: StillDesk, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "PAUSE_S", 0.01)
    still.lay("T-1")
    anna = await come()
    await until(anna, 'ticketgate_review_records{state="waiting"}', 1)

    with still.view() as view:
        (case,) = view.find("T-1", now_ms=0)
        view.add([told(case)], {})
    still.desk.on_news()
    await until(anna, 'ticketgate_review_records{state="waiting"}', 0)

    assert await measured(anna, "ticketgate_review_oldest_seconds") == 0
