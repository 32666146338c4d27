"""Presses and a console that ends: what was not due is not sent and says so; what may have been sent is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ticketgate.agents.settling.console_keys import load_console_keys
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.settlement import Action
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.console.desk.console_desk import ConsoleDesk, now_ms
from ticketgate.streams.console.desk.notes import Notes, Press, PressStage
from ticketgate.streams.console.desk.presses import Pressed
from ticketgate.streams.operations.review.desk import Lying

from ....support.deciding import SUPPORT
from ....support.still_desk import StillDesk
from ..conftest import door_settings


@pytest.fixture
def still(tmp_path: Path) -> StillDesk:
    (tmp_path / "policy.toml").write_text(SUPPORT)
    made = StillDesk(door_settings(tmp_path, policy=str(tmp_path / "policy.toml")))
    with made.view():
        return made


def console(still: StillDesk) -> ConsoleDesk:
    desk = ConsoleDesk(still.settings, following=still.following, topics=still.topics, sender=still.sender)
    desk.start()
    return desk


def pressed(still: StillDesk, press_id: str) -> Pressed:
    record = still.lay(f"T-{press_id}")
    place = Coordinate("review", 0, len(still.topics.records) - 1)
    return Pressed(id=press_id, lying=Lying(place, "ab" * 32, record, None), action=Action.REJECT)


def press(desk: ConsoleDesk, still: StillDesk, given: Pressed) -> Press:
    key = load_console_keys(still.settings.console_keys or Path())["desk"]
    (noted,) = desk.presses.press([given], by="p-1", key=key, batch=given.id)
    return noted


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - of many kinds
            await asyncio.sleep(0.01)


ID = "00000000-0000-4000-8000-000000000001"


async def test_a_console_that_ends_within_the_five_seconds_has_not_sent_it_and_says_so(
    still: StillDesk,
) -> None:
    first = console(still)
    press(first, still, pressed(still, ID))
    await first.stop()

    again = console(still)
    found = again.notes.press(ID)
    await again.stop()

    assert found is not None
    assert (found.stage, found.reason) == (PressStage.NOT_SENT, "the console ended before it was sent")
    assert still.sender.sent == []


async def test_one_that_dies_there_without_a_word_says_so_when_it_is_back(still: StillDesk) -> None:
    notes = Notes(still.settings.review_view.with_suffix(".notes.sqlite3"))
    notes.add([_noted(PressStage.PRESSED)])
    notes.close()

    again = console(still)
    found = again.notes.press(ID)
    await again.stop()

    assert found is not None
    assert found.stage is PressStage.NOT_SENT


async def test_one_that_dies_while_it_sends_sends_the_same_bytes_again(
    still: StillDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ticketgate.streams.console.desk.presses.TAKE_BACK_S", 0.0)
    still.sender.is_away = True
    first = console(still)
    press(first, still, pressed(still, ID))
    await until(lambda: first.notes.press(ID).stage is PressStage.SENDING)  # type: ignore[union-attr]
    signed = first.notes.press(ID).signed  # type: ignore[union-attr]
    await first.stop()

    still.sender.is_away = False
    again = console(still)
    await until(lambda: bool(still.sender.sent))
    await until(lambda: again.notes.press(ID).stage is PressStage.SENT)  # type: ignore[union-attr]
    await again.stop()

    assert [each.encode() for each in still.sender.sent] == [signed]


async def test_what_no_worker_takes_in_its_time_waits_as_before(still: StillDesk) -> None:
    notes = Notes(still.settings.review_view.with_suffix(".notes.sqlite3"))
    notes.add([replace(_noted(PressStage.SENT), pressed_ms=now_ms() - 2 * 3_600_000)])
    notes.close()

    desk = console(still)
    desk.on_news()
    await until(lambda: desk.notes.press(ID).stage is PressStage.TOLD)  # type: ignore[union-attr]
    found = desk.notes.press(ID)
    await desk.stop()

    assert found is not None
    assert found.outcome == "not_taken"


async def test_two_consoles_do_not_take_each_others_presses_for_those_of_one_that_died(
    still: StillDesk,
) -> None:
    first = console(still)

    with pytest.raises(CommandError, match="TICKETGATE_REVIEW_VIEW"):
        ConsoleDesk(still.settings, following=still.following, topics=still.topics, sender=still.sender)

    await first.stop()


async def test_a_press_at_its_last_moment_is_taken_back_or_sent_and_never_both(still: StillDesk) -> None:
    desk = console(still)
    noted = press(desk, still, pressed(still, ID))

    desk.notes.move(noted.id, of=PressStage.PRESSED, to=PressStage.SENDING)
    taken, too_late = desk.presses.take_back(noted.batch, by="p-1")
    await desk.stop()

    assert (taken, too_late) == (0, 1)


def _noted(stage: PressStage) -> Press:
    return Press(
        id=ID,
        batch=ID,
        key="k",
        place="review:0:0",
        ticket_id="T-1",
        action="reject",
        by="p-1",
        pressed_ms=now_ms(),
        due_ms=now_ms() + 5_000,
        stage=stage,
    )
