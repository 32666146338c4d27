"""The watch over a worker's place in its group, over a fake group and a short session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka.errors import GroupAuthorizationFailedError
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.lane.group_watch import GroupWatch
from ticketgate.streams.lane.outside import Outside

SESSION_S = 0.2


class Group:
    """What Membership tells."""

    def __init__(self) -> None:
        self.heard_at: float | None = None
        self.answers = True
        self.polls = 0
        self.raising: Exception | None = None

    async def poll(self) -> None:
        self.polls += 1
        if self.raising is not None:
            raise self.raising
        if self.heard_at is not None and self.answers:
            self.heard_at = time.monotonic()


class Scene:
    """A watch, what it told, and the reason that the brokers would give."""

    def __init__(self, *, rebalance_s: float = 60) -> None:
        self.group = Group()
        self.told: list[str] = []
        self.reason: Exception | None = None
        self.watch = GroupWatch(
            self.group,  # type: ignore[arg-type]
            group="g",
            session_s=SESSION_S,
            rebalance_s=rebalance_s,
            find_reason=self._find_reason,
            on_known=lambda: self.told.append("known"),
            on_unknown=lambda err: self.told.append(str(err)),
        )

    async def _find_reason(self) -> Exception | None:
        return self.reason

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[Any]]:
        task: asyncio.Task[Any] = asyncio.create_task(self.watch.run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, condition: Any) -> None:
        try:
            async with asyncio.timeout(10):
                while not condition():  # noqa: ASYNC110 - the watch tells nobody when
                    await asyncio.sleep(0.005)
        except TimeoutError:
            pytest.fail(f"told {self.told}, polled {self.group.polls} times")


async def test_a_member_is_polled_for_and_known() -> None:
    scene = Scene()
    scene.group.heard_at = time.monotonic()

    async with scene.running():
        await scene.until(lambda: scene.group.polls > 3)

        assert set(scene.told) == {"known"}


async def test_a_group_that_falls_silent_is_told_of_at_once_and_then_with_the_reason() -> None:
    scene = Scene()
    scene.group.heard_at = time.monotonic()
    scene.reason = Unreachable("TICKETGATE_KAFKA", "no broker answers", "start it")
    async with scene.running():
        await scene.until(lambda: "known" in scene.told)

        scene.group.answers = False

        await scene.until(lambda: "no broker answers" in scene.told[-1])
        assert any("group g has not known this worker" in each for each in scene.told)
        scene.group.answers = True
        await scene.until(lambda: scene.told[-1] == "known")


async def test_what_joining_raises_is_raised() -> None:
    scene = Scene()
    scene.group.raising = GroupAuthorizationFailedError("g")

    async with scene.running() as task:
        await asyncio.wait([task], timeout=10)

        assert task.exception() is scene.group.raising


async def test_a_worker_that_is_never_let_in_says_why() -> None:
    scene = Scene()

    async with scene.running():
        await scene.until(lambda: scene.told)

        assert "group g has not known this worker" in scene.told[0]


async def test_a_silence_longer_than_a_session_and_a_rebalance_takes_a_new_consumer() -> None:
    scene = Scene(rebalance_s=0.3)
    scene.group.heard_at = time.monotonic()
    scene.group.answers = False

    async with scene.running() as task:
        await asyncio.wait([task], timeout=10)

        assert isinstance(task.exception(), Outside)


async def test_a_worker_that_was_stopped_gets_the_time_to_join_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(rebalance_s=1)
    scene.group.heard_at = time.monotonic()
    async with scene.running() as task:
        await scene.until(lambda: "known" in scene.told)
        scene.group.answers = False

        time.sleep(2)  # noqa: ASYNC251 - the process stands still

        await scene.until(lambda: scene.told[-1] != "known")
        assert not task.done()
        scene.group.answers = True
        await scene.until(lambda: scene.told[-1] == "known")
