"""The list: the oldest first, filters that are links, and nothing that acts."""

from __future__ import annotations

import json
import re

from ....support.still_desk import StillDesk
from .conftest import Come


async def test_the_oldest_comes_first_and_says_why_it_is_here(still: StillDesk, come: Come) -> None:
    still.lay("T-new", "the newer", hours_old=1)
    still.lay("T-old", "the older", hours_old=30)
    anna = await come()

    page = await anna.get("/")

    assert page.status == 200
    assert page.text.index("T-old") < page.text.index("T-new")
    assert "2 waiting" in page.text
    assert "urgent requires review" in page.text
    assert "1d old" in page.text


async def test_what_ends_soon_is_marked_in_words(still: StillDesk, come: Come) -> None:
    still.lay("T-1", hours_old=24 * still.settings.claim_ttl.days - 30.5)
    anna = await come()

    assert "ends in 1d!" in (await anna.get("/")).text


async def test_every_filter_is_a_link_that_narrows_and_one_that_does_not(
    still: StillDesk, come: Come
) -> None:
    still.lay(
        "T-billing",
        answers={"urgent": 0.9, "review": 0.1, "auto_reply": 0.2, "billing": 0.8, "technical": 0.1},
    )
    still.lay(
        "T-tech", answers={"urgent": 0.9, "review": 0.1, "auto_reply": 0.2, "billing": 0.1, "technical": 0.8}
    )
    anna = await come()
    page = await anna.get("/")

    (link,) = page.links("label=technical")
    narrowed = await anna.get(link)

    assert "T-tech" in narrowed.text
    assert "T-billing" not in narrowed.text
    assert "1 found" in narrowed.text
    assert "/" in narrowed.links("/")
    assert all("label=technical" in each for each in narrowed.links("/ticket/"))


async def test_an_empty_list_says_so_and_what_comes_next(still: StillDesk, come: Come) -> None:
    anna = await come()

    assert "Nothing waits here." in (await anna.get("/")).text
    assert "fits these filters" in (await anna.get("/?words=nothing")).text


async def test_of_an_empty_list_no_frame_is_drawn(still: StillDesk, come: Come) -> None:
    anna = await come()

    # The style sheet hides `#rows:empty`, and a line break in it is no emptiness to a browser.
    assert re.search(r'<ol id="rows"[^>]*></ol>', (await anna.get("/")).html)


async def test_pages_go_on_where_the_last_one_ended(still: StillDesk, come: Come) -> None:
    for number in range(60):
        still.lay(f"T-{number:02}", hours_old=100 - number)
    anna = await come()
    first = await anna.get("/")

    (link,) = first.links("after=")
    second = await anna.get(link)

    assert "T-49" in first.text
    assert "T-50" not in first.text
    assert "T-50" in second.text
    assert "T-49" not in second.text


async def test_text_that_is_markup_stays_text(still: StillDesk, come: Come) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    still.lay(evil[:200], evil, tenant="<b>t</b>", attributes={"<i>": "</textarea><script>"})
    anna = await come()
    page = await anna.get("/")

    shown = await anna.get(page.links("/ticket/")[0])

    for each in (page, shown):
        assert "alert(1)" in each.text
        assert "<script>alert" not in each.html
        assert "<img" not in each.html
    assert not {"img", "iframe", "b", "i", "textarea"} & (page.tags | shown.tags)


async def test_who_sees_the_list_is_written_down(still: StillDesk, come: Come) -> None:
    record = still.lay("T-1")
    ben = await come("ben")
    await ben.get("/")

    (read,) = still.reads

    assert (read["command"], read["tickets"]) == ("console list", [record.idempotency_key])
    assert read["by"] == json.loads(still.settings.people_file.read_text())["ben"]


async def test_a_view_that_is_not_there_yet_is_told_with_its_progress(still: StillDesk, come: Come) -> None:
    still.be(about=None, is_current=False, done=1_200, total=5_000)
    anna = await come()

    page = await anna.get("/")

    assert page.status == 503
    assert "1,200 of 5,000 records" in page.text


async def test_what_is_shown_while_topics_cannot_be_read_is_called_old(still: StillDesk, come: Come) -> None:
    still.lay("T-1")
    still.be(is_current=False, fault="no broker answers")
    anna = await come()

    page = await anna.get("/")

    assert "T-1" in page.text
    assert "what is shown is old: no broker answers" in page.text
