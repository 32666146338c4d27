"""The watch over the brokers that lead partitions, over a fake consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.lane import leader_watch
from ticketgate.streams.lane.leader_watch import watch_leaders

from ...support.fakes import SOURCE


class Leaders:
    """Answer, or do not."""

    def __init__(self) -> None:
        self.raising: Exception | None = None
        self.asked: list[Sequence[TopicPartition]] = []

    async def end_offsets(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append(sources)
        if self.raising is not None:
            raise self.raising
        return dict.fromkeys(sources, 0)


async def test_a_leader_that_does_not_answer_is_told_of_until_it_does_or_its_lanes_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_watch, "LOOK_S", 0.01)
    leaders, readiness = Leaders(), Readiness()
    serving: list[Any] = [(leaders, [SOURCE])]
    task = asyncio.create_task(watch_leaders(lambda: serving[0], readiness, part="leaders"))

    async def until(is_ready: bool) -> None:
        async with asyncio.timeout(10):
            while readiness.is_ready is not is_ready or not leaders.asked:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    try:
        await until(is_ready=True)
        leaders.raising = KafkaTimeoutError("no leader")
        await until(is_ready=False)
        assert f"{SOURCE.topic}:{SOURCE.partition}" in readiness.reasons["leaders"]
        leaders.raising = None
        await until(is_ready=True)
        leaders.raising = KafkaTimeoutError("no leader")
        await until(is_ready=False)
        serving[0] = None
        await until(is_ready=True)
    finally:
        task.cancel()
