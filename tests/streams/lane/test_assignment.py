"""Rebalances to lanes: what is taken away ends, whatever becomes of its cancellation."""

from __future__ import annotations

import asyncio

from ticketgate.streams.config.readiness import LOOKUP, SCORER, Readiness
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.assignment import Assignment

from ...support.fakes import SOURCE


class SwallowsItsCancellation:
    """A lane in whose step a cancellation gets lost, as in asyncio.wait_for before Python 3.12."""

    name = "lane tickets:0"

    def __init__(self) -> None:
        self.is_drained, self.is_at_work = asyncio.Event(), asyncio.Event()
        self.steps = 0

    async def run(self) -> None:
        while not self.is_drained.is_set():
            self.steps += 1
            self.is_at_work.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    def drain(self) -> None:
        self.is_drained.set()


class Consumer:
    """Takes a pause."""

    def pause(self, *_: object) -> None: ...


def assignment_of(lane: SwallowsItsCancellation, readiness: Readiness) -> Assignment:
    return Assignment(
        Consumer(),  # type: ignore[arg-type]
        new_lane=lambda _: lane,  # type: ignore[arg-type,return-value]
        telemetry=Telemetry(),
        readiness=readiness,
        topic=SOURCE.topic,
        on_assigned=lambda: None,
    )


async def test_what_a_lane_waited_for_is_no_reason_once_it_is_revoked() -> None:
    lane, readiness = SwallowsItsCancellation(), Readiness("kafka")
    assignment = assignment_of(lane, readiness)
    assignment.on_partitions_assigned([SOURCE])
    await lane.is_at_work.wait()
    for part in (lane.name, SCORER, LOOKUP):
        readiness.wait(part, "nobody answers")

    await assignment.on_partitions_revoked([SOURCE])

    assert readiness.reasons == {"kafka": "starting"}


async def test_a_lane_whose_cancellation_gets_lost_ends_all_the_same() -> None:
    lane = SwallowsItsCancellation()
    assignment = assignment_of(lane, Readiness())
    assignment.on_partitions_assigned([SOURCE])
    await lane.is_at_work.wait()

    async with asyncio.timeout(1):
        await assignment.on_partitions_revoked([SOURCE])

    assert lane.steps == 1
