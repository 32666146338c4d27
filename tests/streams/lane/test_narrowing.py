"""Records that will not pass: each at fault is set aside alone, and where it is not the record, none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, MessageSizeTooLargeError
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ticketgate.store.claims import ClaimsContested
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.faults import Action
from ticketgate.streams.kafka.unknown_errors import InvalidRecord
from ticketgate.streams.lane.opening.care import Care
from ticketgate.streams.lane.opening.opening import Start
from ticketgate.streams.lane.recovery import handling
from ticketgate.streams.lane.taking.batch import NONE_ASIDE
from ticketgate.streams.lane.taking.careful import CarefulTaker
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.narrowing import WillNotPass, cause_of
from ticketgate.streams.lane.taking.pace import Pace
from ticketgate.streams.lane.taking.partition import PartitionReader
from ticketgate.streams.lane.taking.pieces import Pieces

from ...support.fakes import SOURCE, TOKEN, FakeConsumer, FakeOutput, FakeUnderWays

MOST = 8


async def verified(_: Witness) -> None:
    """The topic has what it had."""


class Partition:
    """A partition of `count` records, in which pieces with what is `bad` fail unless it is set aside."""

    def __init__(
        self, count: int, bad: Sequence[int], *, size: int = MOST, makes: Any = InvalidRecord
    ) -> None:
        self.consumer = FakeConsumer([b"v"] * count, is_paused=False)
        reader = PartitionReader(self.consumer, SOURCE, positions={})  # type: ignore[arg-type]
        reader.seek(0)
        self.reader, self.bad, self.makes = reader, set(bad), makes
        self.committed: list[int] = []
        self.aside: dict[int, str] = {}
        self.raised: list[Exception] = []
        self.floor = Floor()
        self.careful = CarefulTaker(
            SOURCE,
            reader=reader,
            passing=self,  # type: ignore[arg-type]
            under_ways=FakeUnderWays(),  # type: ignore[arg-type]
            floor=self.floor,
            telemetry=Telemetry(),
        )
        self.pieces = Pieces(
            "tickets:0",
            reader=reader,
            careful=self.careful,
            floor=self.floor,
            taker=self,
            pace=Pace(MOST, size=size),
            verify=verified,
        )
        self.tries = 0

    async def take(self, records: Sequence[Any], *, aside: Mapping[int, str] = NONE_ASIDE, **_: Any) -> int:
        """Stands in for a taker."""
        self.tries += 1
        if self.bad & ({each.offset for each in records} - aside.keys()):
            raise self.makes()
        self.committed += [each.offset for each in records]
        self.aside |= aside
        return int(records[-1].offset) + 1

    async def run(self, tries: int) -> int:
        """Take pieces as a lane does, at most `tries` of them; how far it got."""
        at = 0
        for _ in range(tries):
            if at == len(self.consumer.values):
                break
            try:
                taken = await self.pieces.take_next(at, Start(at, TOKEN, Care(at)), FakeOutput())
            except Exception as err:  # noqa: BLE001 - as a lane does
                self.raised.append(err)
                self.reader.seek(at)
                continue
            assert taken is not None
            at = taken
        return at


async def test_a_record_at_fault_is_set_aside_alone_and_all_others_pass() -> None:
    partition = Partition(20, bad=[5])

    assert await partition.run(40) == 20
    assert partition.committed == list(range(20))
    assert list(partition.aside) == [5]
    assert "record_refused: it fails alone" in partition.aside[5]


async def test_the_first_record_of_a_partition_is_set_aside_with_its_neighbour_as_witness() -> None:
    partition = Partition(20, bad=[0])

    assert await partition.run(40) == 20
    assert list(partition.aside) == [0]


async def test_two_in_a_row_that_fail_alone_are_the_environment_and_nothing_is_set_aside() -> None:
    partition = Partition(20, bad=[5, 6])

    assert await partition.run(40) == 5
    assert partition.aside == {}
    said = partition.raised[-1]
    assert isinstance(said, WillNotPass)
    assert handling(said).action is Action.REFUSE
    assert "tickets:0:5 and its neighbour both fail alone" in str(said)
    assert "cleanup.policy" in handling(said).remedy


async def test_once_it_is_mended_around_them_all_pass() -> None:
    partition = Partition(20, bad=list(range(20)))
    assert await partition.run(30) == 0

    partition.bad = set()

    assert await partition.run(40) == 20
    assert partition.aside == {}


async def test_the_last_record_waits_for_a_neighbour_if_nothing_else_is_known() -> None:
    partition = Partition(1, bad=[0])
    assert await partition.run(10) == 0
    assert "set aside once a record behind it passes" in handling(partition.raised[-1]).remedy

    partition.consumer.values = [b"v"] * 2

    assert await partition.run(3) == 2
    assert list(partition.aside) == [0]


async def test_the_last_record_is_set_aside_if_those_before_it_passed_since() -> None:
    partition = Partition(8, bad=[7])

    assert await partition.run(20) == 8
    assert list(partition.aside) == [7]


async def test_a_record_that_fails_by_chance_is_not_set_aside() -> None:
    partition = Partition(4, bad=[0], size=1)
    await partition.run(1)
    partition.bad = set()

    assert await partition.run(10) == 4
    assert partition.aside == {}


async def test_time_outs_narrow_and_blame_nobody() -> None:
    partition = Partition(20, bad=[5], makes=TimeoutError)

    assert await partition.run(40) == 5
    assert partition.aside == {}
    assert not any(isinstance(err, WillNotPass) for err in partition.raised)


async def test_a_broker_that_goes_away_meanwhile_changes_nothing() -> None:
    partition = Partition(20, bad=[5])
    await partition.run(5)
    partition.makes = KafkaConnectionError
    await partition.run(3)
    partition.makes = InvalidRecord

    assert await partition.run(40) == 20
    assert list(partition.aside) == [5]


def test_causes_are_told_apart_by_where_they_arise_and_never_by_what_they_say() -> None:
    def raised(text: str) -> Exception:
        try:
            raise ValueError(text)
        except ValueError as err:
            return err

    cause = cause_of(raised("one ticket's text"))

    assert cause is not None
    assert cause == cause_of(raised("another's"))
    assert cause != cause_of(ValueError())
    assert "ValueError at" in cause.detail
    assert "text" not in cause.detail


@pytest.mark.parametrize("error", [KafkaConnectionError(), ClaimsContested()])
def test_what_says_nothing_of_records_is_no_cause(error: Exception) -> None:
    assert cause_of(error) is None


def test_a_size_is_a_cause() -> None:
    cause = cause_of(MessageSizeTooLargeError())

    assert cause is not None
    assert cause.name == "record_too_large"


@settings(deadline=None)
@given(
    count=st.integers(2, 60),
    bad=st.sets(st.integers(0, 59)),
    size=st.integers(1, MOST),
)
@example(count=2, bad={0}, size=2)
@example(count=5, bad={0, 2, 4}, size=8)
async def test_however_faults_lie_nothing_is_passed_over_and_nothing_sound_is_set_aside(
    count: int, bad: set[int], size: int
) -> None:
    bad = {each for each in bad if each < count}
    partition = Partition(count, bad=sorted(bad), size=size)

    reached = await partition.run(40 + 12 * count)

    assert partition.committed == list(range(reached))
    assert partition.aside.keys() == {each for each in bad if each < reached}
    rows = [each for each in bad if each + 1 in bad]
    if rows:
        assert reached == min(rows)
    else:
        # Only a last record without a witness may be left.
        assert reached == count or (reached == count - 1 and reached in bad)
