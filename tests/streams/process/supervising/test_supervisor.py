"""Processes that die, hang, close their line and are refused, under one supervisor."""

from __future__ import annotations

import logging
import os
import signal

import pytest

from .conftest import NewHeld, until


def lives(pid: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_that_is_killed_is_replaced_and_the_other_is_left_alone(hold: NewHeld) -> None:
    held = hold("serves", "serves")
    held.begin()
    first, second = await held.listening(0), await held.listening(1)

    os.kill(first, signal.SIGKILL)

    await until(lambda: held.pid(0) not in (None, first), what="another in its place")
    assert held.pid(1) == second
    assert held.keepers[0].restarts == 1
    held.supervisor.signalled(signal.SIGTERM)
    assert await held.code() == 0
    assert not lives(second)


async def test_one_signal_drains_all(hold: NewHeld) -> None:
    held = hold("serves", "serves", "serves")
    held.begin()
    pids = {await held.listening(place) for place in range(3)}

    held.supervisor.signalled(signal.SIGINT)

    assert await held.code() == 0
    assert held.drained == pids


async def test_a_process_that_hangs_is_killed_after_the_drain_and_the_others_drain(
    hold: NewHeld, caplog: pytest.LogCaptureFixture
) -> None:
    held = hold("hangs", "serves", drain_s=0.5)
    held.begin()
    hung, other = await held.listening(0), await held.listening(1)

    held.supervisor.signalled(signal.SIGTERM)

    assert await held.code() == 0
    assert held.drained == {other}
    assert not lives(hung)
    assert f"still not ended, and killed: worker 1 (process {hung})" in caplog.messages


async def test_a_second_signal_ends_at_once(hold: NewHeld) -> None:
    held = hold("hangs", "serves")
    held.begin()
    hung = await held.listening(0)
    await held.listening(1)
    held.supervisor.signalled(signal.SIGTERM)

    held.supervisor.signalled(signal.SIGTERM)

    assert await held.code() == 128 + signal.SIGTERM
    assert not lives(hung)


async def test_a_process_that_closed_its_line_is_killed_after_the_drain(hold: NewHeld) -> None:
    held = hold("closes", "serves", drain_s=0.5)
    held.begin()
    deaf = await held.listening(0)
    await held.listening(1)

    held.supervisor.signalled(signal.SIGTERM)

    assert await held.code() == 0
    assert not lives(deaf)


async def test_a_crash_loop_is_told_and_takes_nobody_along(
    hold: NewHeld, caplog: pytest.LogCaptureFixture
) -> None:
    held = hold("dies", "serves")
    held.begin()
    second = await held.listening(1)

    await until(lambda: held.keepers[0].restarts >= 4, what="four starts again")

    assert "ended with code 70" in held.keepers[0].why_not()
    assert "times in a row" in held.keepers[0].why_not()
    assert any(
        record.levelno == logging.ERROR and "times in a row" in record.getMessage()
        for record in caplog.records
    )
    assert held.pid(1) == second
    held.kinds[0] = "serves"
    await held.listening(0)
    held.keepers[0].seen_ready()
    assert held.keepers[0].why_not() == ""


async def test_what_refuses_all_of_them_ends_the_supervisor_with_its_code(hold: NewHeld) -> None:
    held = hold("refused", "refused")

    held.begin()

    assert await held.code() == 2


async def test_one_that_is_refused_is_tried_again_while_another_works(hold: NewHeld) -> None:
    held = hold("refused", "serves")
    held.begin()
    await held.listening(1)
    await until(lambda: held.keepers[0].restarts >= 2, what="tried again")

    held.kinds[0] = "serves"

    await held.listening(0)
    held.keepers[0].seen_ready()
    assert not held.keepers[0].is_refused


async def test_a_crash_beside_a_refusal_does_not_end_all(hold: NewHeld) -> None:
    held = hold("refused", "dies")
    held.begin()

    await until(lambda: min(keeper.restarts for keeper in held.keepers) >= 3, what="both tried again")

    assert held.running is not None
    assert not held.running.done()


async def test_a_signal_during_the_wait_for_the_next_start_ends_that_wait(hold: NewHeld) -> None:
    held = hold("dies", "serves", first_s=600)
    held.begin()
    await held.listening(1)
    await until(lambda: "starts again" in held.keepers[0].why_not(), what="the wait")

    held.supervisor.signalled(signal.SIGTERM)

    assert await held.code() == 0


async def test_a_hangup_reaches_each_process(hold: NewHeld) -> None:
    held = hold("serves", "serves")
    held.begin()
    pids = [await held.listening(place) for place in range(2)]

    held.supervisor.hung_up()

    held.supervisor.signalled(signal.SIGTERM)
    await held.code()
    assert [(held.marks / f"{pid}.drained").read_text() for pid in pids] == ["1", "1"]


async def test_logs_are_whole_lines_under_the_name_of_their_process(hold: NewHeld) -> None:
    held = hold("serves", "serves")
    held.begin()
    pids = [await held.listening(place) for place in range(2)]

    held.supervisor.signalled(signal.SIGTERM)
    await held.code()

    for place, pid in enumerate(pids, start=1):
        assert [line for line in held.lines if line.startswith(f"[worker {place}] ")] == [
            f"[worker {place}] first half, second half of {pid}",
            f"[worker {place}] " + "x" * 5000,
            f"[worker {place}] no line feed",
        ]


async def test_a_command_that_cannot_be_started_is_tried_again(
    hold: NewHeld, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hold("serves")

    async def fails() -> None:
        raise FileNotFoundError(2, "No such file or directory")

    start = held.keepers[0]._start
    monkeypatch.setattr(held.keepers[0], "_start", fails)
    held.begin()
    await until(lambda: held.keepers[0].restarts >= 2, what="tried again")
    assert "ended before it began (No such file or directory)" in held.keepers[0].why_not()

    monkeypatch.setattr(held.keepers[0], "_start", start)

    await held.listening(0)
