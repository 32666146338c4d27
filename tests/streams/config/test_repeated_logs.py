"""What a log holds of what repeats: the first at once, then a line a minute with a count, and nothing lost silently."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
from ticketgate.streams.config import repeated_logs
from ticketgate.streams.config.repeated_logs import MOST_CAUSES, RepeatLimit


class Scene:
    """A logger whose handler holds repetitions back, and a clock."""

    def __init__(self, name: str) -> None:
        self.now = 0.0
        self.log = logging.Logger(name)  # noqa: LOG001 - one that the others' handlers do not hear
        self.out = io.StringIO()
        handler = logging.StreamHandler(self.out)
        self.limit = RepeatLimit(handler, now=lambda: self.now)
        handler.addFilter(self.limit)
        self.log.addHandler(handler)

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


@pytest.fixture
def library() -> Scene:
    return Scene("aiokafka.client")


@pytest.fixture
def ours() -> Scene:
    return Scene("ticketgate.streams.lane.lane")


def test_a_library_that_repeats_itself_is_written_once_a_minute_with_the_count(library: Scene) -> None:
    for n in range(1_201):
        library.now = n / 10
        library.log.error("Unable connect to node with id %d: attempt %#x", n % 3, n)

    assert library.lines == [
        "Unable connect to node with id 0: attempt 0x0",
        "Unable connect to node with id 0: attempt 0x258 (repeated 599 times in the last 60 s)",
        "Unable connect to node with id 0: attempt 0x4b0 (repeated 599 times in the last 60 s)",
    ]


def test_what_stops_repeating_is_counted_all_the_same(library: Scene) -> None:
    for n in range(8):
        library.log.warning("no node %d", n)
    library.now = 59
    library.limit.tell()
    assert library.lines == ["no node 0"]

    library.now = 61
    library.limit.tell()
    library.limit.tell()

    assert library.lines == ["no node 0", "no node 7 (repeated 7 times in the last 61 s)"]


def test_what_was_held_back_is_told_when_the_process_ends(library: Scene) -> None:
    library.log.warning("no node %d", 1)
    library.log.warning("no node %d", 2)

    library.limit.tell(at_once=True)

    assert library.lines == ["no node 1", "no node 2 (repeated 1 times in the last 0 s)"]


def test_another_cause_is_written_at_once(ours: Scene) -> None:
    for cause in ("redis_away", "broker_away", "redis_away"):
        ours.log.warning("%s reopens in %.1f s", cause, 0.3, extra={"cause": cause})

    assert ours.lines == ["redis_away reopens in 0.3 s", "broker_away reopens in 0.3 s"]


def test_coordinates_of_our_own_are_no_repetition(ours: Scene) -> None:
    for partition in (1, 2, 2):
        ours.log.warning("tickets:%d lost records to retention", partition)

    assert ours.lines == ["tickets:1 lost records to retention", "tickets:2 lost records to retention"]


def test_life_and_death_are_never_held_back(ours: Scene) -> None:
    for _ in range(3):
        ours.log.info("assigned 6 partitions")

    assert ours.lines == ["assigned 6 partitions"] * 3


def test_causes_without_end_take_no_memory_without_end(ours: Scene) -> None:
    for n in range(MOST_CAUSES * 2):
        ours.log.warning("cause %d", n)
        ours.log.warning("cause %d", n)

    assert len(ours.limit._causes) == MOST_CAUSES
    assert sum("repeated 1 times" in line for line in ours.lines) == MOST_CAUSES


@pytest.fixture
def root_handler() -> Iterator[logging.Handler]:
    handler = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_a_handler_is_limited_once(root_handler: logging.Handler) -> None:
    others = {handler: [*handler.filters] for handler in logging.getLogger().handlers}
    try:
        for _ in range(2):
            repeated_logs.limit_repeats()

        assert len(root_handler.filters) == 1
    finally:
        for handler, filters in others.items():
            handler.filters = filters
