"""A lane over fakes: what it does about each error, and what it never does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError
from ticketgate.store.durability import ClaimsNotDurable
from ticketgate.store.lane_state.underway import Doing, Left, UnderWay
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.overdue import Steps
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.reading.salvage import Fetched, UnreadableBatch
from ticketgate.streams.kafka.refusals import KafkaRefused
from ticketgate.streams.lane import lane as lane_module
from ticketgate.streams.lane.lane import Lane
from ticketgate.streams.lane.opening.care import Care
from ticketgate.streams.lane.opening.opening import Start
from ticketgate.streams.lane.recovery import TABLE, handling
from ticketgate.streams.lane.taking import partition
from ticketgate.streams.lane.taking.batch import BatchHung, ClaimingTaker
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.intake import ticket_reader
from ticketgate.streams.lane.taking.narrowing import cause_of
from ticketgate.streams.lane.taking.pace import Pace
from ticketgate.streams.lane.taking.partition import PartitionReader
from ticketgate.streams.lane.taking.records import OutputTopics, RecordWriter
from ticketgate.streams.roles.decide.deciding import ScorerHung
from ticketgate.streams.roles.decide.ticket_work import TicketWork

from ...support.deployment import Sent
from ...support.fakes import SOURCE, TOKEN, FakeClaims, FakeConsumer, FakeDecider, FakeOutput, FakeUnderWays
from ...support.raw_batches import batch_bytes

SCENE_LANE = f"lane {SOURCE.topic}:{SOURCE.partition}"


def ticket(n: int, state: str = "text") -> bytes:
    return json.dumps({"id": f"T-{n}", "state": state}).encode()


@dataclass
class Scene:
    """A lane and all that it talks to."""

    values: list[bytes | None] = field(default_factory=lambda: [ticket(n) for n in range(4)])
    start: int = 0
    care: Care | None = None
    is_member: bool = True

    def __post_init__(self) -> None:
        self.consumer = FakeConsumer(self.values)
        self.output, self.under_ways, self.decider = FakeOutput(), FakeUnderWays(), FakeDecider()
        self.claims = FakeClaims(self.under_ways)
        self.readiness, self.hung = Readiness(), []
        self.positions: dict[Any, int] = {}
        self.refusal: Exception | None = None
        self.hidden_refusal: Exception | None = None
        topics = OutputTopics("dispatch", "review", "dead-letter", "repairs", "receipts", "settled")
        writer, telemetry = RecordWriter(topics, 1_000_000, False), Telemetry()
        self.lane = Lane(
            SOURCE,
            consumer=self.consumer,  # type: ignore[arg-type]
            opening=self,  # type: ignore[arg-type]
            output=self.output,
            passing=self,  # type: ignore[arg-type]
            under_ways=self.under_ways,  # type: ignore[arg-type]
            floor=Floor(),
            taker=ClaimingTaker(
                claims=self.claims,  # type: ignore[arg-type]
                read=ticket_reader(namespace="n", max_bytes=10_000),
                work=TicketWork(self.decider, writer, telemetry),
                writer=writer,
                telemetry=telemetry,
                now=lambda: datetime(2026, 11, 29, tzinfo=UTC),
            ),
            telemetry=telemetry,
            pace=Pace(2, size=2),
            positions=self.positions,
            readiness=self.readiness,
            steps=Steps(),
            is_member=self._member,
            diagnose=self._diagnose,
            on_hang=self._on_hang,
        )

    async def take_token(self, _: Any) -> LaneToken:
        """Stands in for Opening."""
        return TOKEN

    async def read_start(self, *_: Any) -> Start:
        """Stands in for Opening: the offset is what was committed last."""
        if self.refusal is not None:
            raise self.refusal
        committed = self.output.committed[-1][1] if self.output.committed else None
        offset = committed if committed is not None else self.start
        return Start(offset, TOKEN, self.care or Care(offset))

    async def verify(self, *_: Any) -> None:
        """Stands in for Opening."""

    async def pass_over(self, batch: UnreadableBatch, **_: Any) -> int:
        """Stands in for PassingOver: nobody ordered it."""
        raise batch

    async def _member(self) -> bool:
        return self.is_member

    async def _diagnose(self, err: Exception) -> Exception:
        return self.hidden_refusal or err

    async def _on_hang(self, _: Any, hung: BatchHung) -> None:
        self.hung.append(hung.offsets)
        self.lane.drain()

    @property
    def offsets(self) -> list[int]:
        """The offsets committed, in order."""
        return [offset for _, offset in self.output.committed]

    @property
    def emitted(self) -> list[str]:
        """The ticket ids in what was committed, in order."""
        return [
            json.loads(each.value)["ticket_id"] for records, _ in self.output.committed for each in records
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The lane's task; the lane is drained at the end and must then end by itself."""
        task = asyncio.create_task(self.lane.run())
        try:
            yield
            self.lane.drain()
            async with asyncio.timeout(5):
                await task
        finally:
            task.cancel()

    async def until(self, condition: Any) -> None:
        """Wait for a condition, and fail with what was seen."""
        try:
            async with asyncio.timeout(5):
                while not condition():  # noqa: ASYNC110 - the lane tells nobody
                    await asyncio.sleep(0.005)
        except TimeoutError:
            pytest.fail(
                f"committed {self.offsets}, waiting {self.readiness.reasons}, opens {self.output.opens}"
            )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_module, "BACK_OFF_FIRST_S", 0.01)
    monkeypatch.setattr(lane_module, "BACK_OFF_MOST_S", 0.02)
    monkeypatch.setattr(partition, "POLL_MS", 5)

    async def fetch(consumer: FakeConsumer, source: Any, offset: int) -> Fetched:
        sent = [Sent(value, key=b"key") for value in consumer.values]
        return Fetched(source, offset, data=batch_bytes(sent), end=len(sent))

    monkeypatch.setattr(partition, "fetch", fetch)


async def test_a_lane_takes_batches_in_order_and_says_that_it_works() -> None:
    scene = Scene()

    async with scene.running():
        await scene.until(lambda: scene.offsets == [2, 4])

        assert scene.readiness.is_ready
    assert scene.emitted == ["T-0", "T-1", "T-2", "T-3"]
    assert scene.claims.marks == [("claimed", 2), ("committed", 2), ("claimed", 4), ("committed", 4)]
    assert scene.output.closes >= 1


@pytest.mark.parametrize(
    "error",
    [kind for kind, how in TABLE if how.action is Action.REOPEN],
    ids=lambda kind: kind.__name__,
)
async def test_an_error_that_heals_reopens_the_lane_which_repeats_the_batch(
    error: type[BaseException],
) -> None:
    scene = Scene()
    scene.output.raising = [_make(error)]

    async with scene.running():
        await scene.until(lambda: scene.offsets[-1:] == [4])

    # What may be the records' fault is tried again in smaller pieces, everything else as it was.
    assert scene.offsets == ([2, 4] if cause_of(_make(error)) is None else [1, 3, 4])
    assert scene.output.opens == 2
    assert scene.emitted == ["T-0", "T-1", "T-2", "T-3"]
    assert handling(_make(error)).cause != "other"


@pytest.mark.parametrize(
    "error",
    [kind for kind, how in TABLE if how.action is Action.REFUSE],
    ids=lambda kind: kind.__name__,
)
async def test_an_error_that_a_person_must_mend_is_refused_with_its_remedy(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    scene.output.raising = [_make(error)]

    async with scene.running():
        await scene.until(lambda: scene.readiness.reasons and "opening" not in str(scene.readiness.reasons))

        assert handling(_make(error)).cause in str(scene.readiness.reasons)
        assert scene.output.opens == 1
        assert scene.offsets == []
    assert handling(_make(error)).remedy in caplog.text


async def test_an_unknown_error_reopens_too() -> None:
    scene = Scene()
    scene.output.raising = [KafkaError(), ZeroDivisionError()]

    async with scene.running():
        await scene.until(lambda: scene.offsets == [1, 3, 4])

    assert scene.output.opens == 3


async def test_a_commit_whose_reply_was_lost_is_not_repeated() -> None:
    scene = Scene()
    commit = scene.output.commit

    async def commits_and_times_out(records: Any, next_offset: int) -> None:
        scene.output.commit = commit  # type: ignore[method-assign]
        await commit(records, next_offset)
        raise TimeoutError

    scene.output.commit = commits_and_times_out  # type: ignore[method-assign]

    async with scene.running():
        await scene.until(lambda: scene.offsets == [2, 3, 4])

    assert scene.emitted == ["T-0", "T-1", "T-2", "T-3"]


async def test_a_broker_that_is_there_and_refuses_makes_the_lane_refuse() -> None:
    scene = Scene()
    scene.refusal = KafkaConnectionError("Unable to bootstrap")
    scene.hidden_refusal = KafkaRefused("TICKETGATE_KAFKA_PASSWORD", "not taken", "set another")

    async with scene.running():
        await scene.until(lambda: "kafka_refused" in str(scene.readiness.reasons))

        assert "TICKETGATE_KAFKA_PASSWORD: not taken; set another" in str(scene.readiness.reasons)


async def test_a_broker_that_is_away_makes_the_lane_reopen() -> None:
    scene = Scene()
    scene.refusal = KafkaConnectionError("Unable to bootstrap")

    async with scene.running():
        await scene.until(lambda: "broker_away" in str(scene.readiness.reasons))


async def test_a_worker_that_the_group_does_not_know_fences_nobody() -> None:
    scene = Scene(is_member=False)

    async with scene.running():
        await scene.until(lambda: "not_a_member" in str(scene.readiness.reasons))

        assert scene.output.opens == 0


async def test_a_record_from_before_the_position_is_not_taken() -> None:
    scene = Scene(start=2)
    seek = scene.consumer.seek

    def seeks_wrong_once(partition: Any, offset: int) -> None:
        scene.consumer.seek = seek  # type: ignore[method-assign]
        seek(partition, offset - 1)

    scene.consumer.seek = seeks_wrong_once  # type: ignore[method-assign]

    async with scene.running():
        await scene.until(lambda: scene.offsets == [4])

    assert scene.emitted == ["T-2", "T-3"]


async def test_a_failure_of_the_consumer_makes_the_lane_seek_to_its_own_next_offset() -> None:
    scene = Scene()
    async with scene.running():
        await scene.until(lambda: scene.offsets == [2, 4])
        scene.consumer.raising = [KafkaError()]

        await scene.until(lambda: scene.consumer.seeks == [0, 4])


async def test_a_lane_whose_consumer_was_moved_by_another_does_not_pass_anything_over() -> None:
    scene = Scene(values=[ticket(n) for n in range(8)])
    deciding, moved = asyncio.Event(), asyncio.Event()
    decide = scene.decider.decide

    async def waits(tickets: Any) -> Any:
        deciding.set()
        await moved.wait()
        return await decide(tickets)

    scene.decider.decide = waits  # type: ignore[method-assign]
    async with scene.running():
        await deciding.wait()
        other = PartitionReader(scene.consumer, SOURCE, positions=scene.positions)  # type: ignore[arg-type]
        other.seek(2)
        assert [record.offset for record in await other.poll(2, most=2)] == [2, 3]
        moved.set()

        await scene.until(lambda: scene.offsets == [2, 4, 6, 8])

    assert scene.emitted == [f"T-{n}" for n in range(8)]


async def test_failures_are_not_tried_again_without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_module, "BACK_OFF_FIRST_S", 0.05)
    monkeypatch.setattr(lane_module, "BACK_OFF_MOST_S", 1.0)
    scene = Scene()
    scene.output.raising = [KafkaError() for _ in range(1000)]

    async with scene.running():
        await asyncio.sleep(0.5)

        # 0.05 doubled each time, at the least halved by the jitter: 0.025 + 0.05 + 0.1 + 0.2 + 0.4 …
        assert scene.output.opens <= 6


async def test_a_drained_lane_finishes_its_batch_and_takes_no_other() -> None:
    scene = Scene()
    deciding = asyncio.Event()
    decide = scene.decider.decide

    async def decides_when_drained(tickets: Any) -> Any:
        deciding.set()
        await scene.lane._drained.wait()
        return await decide(tickets)

    scene.decider.decide = decides_when_drained  # type: ignore[method-assign]
    task = asyncio.create_task(scene.lane.run())
    await deciding.wait()

    scene.lane.drain()

    async with asyncio.timeout(5):
        await task
    assert scene.offsets == [2]


async def test_a_cancelled_lane_commits_nothing_more() -> None:
    scene = Scene()
    deciding = asyncio.Event()

    async def never(_: Any) -> Any:
        deciding.set()
        await asyncio.Event().wait()

    scene.decider.decide = never  # type: ignore[method-assign]
    task = asyncio.create_task(scene.lane.run())
    await deciding.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert scene.offsets == []
    assert scene.output.closes >= 1


class Told(LaneFault):
    """What somebody beside the lane found."""

    def __init__(self) -> None:
        super().__init__("evicts", Handling(Action.REFUSE, "conditions", "set it to noeviction"))


async def test_an_interrupted_lane_gives_up_its_batch_and_recovers_from_what_it_was_told() -> None:
    scene = Scene()
    deciding = asyncio.Event()

    async def never(_: Any) -> Any:
        deciding.set()
        await asyncio.Event().wait()

    scene.decider.decide = never  # type: ignore[method-assign]
    async with scene.running():
        await deciding.wait()

        scene.lane.interrupt(Told())

        await scene.until(
            lambda: scene.readiness.reasons == {SCENE_LANE: "conditions: evicts; set it to noeviction"}
        )
        assert scene.offsets == []
        scene.lane.interrupt(Told())  # it waits: nothing to give up


@pytest.mark.parametrize("lost", [False, True], ids=["delivered", "lost"])
async def test_an_interrupted_lane_serves_on_once_it_may_open(
    lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_module, "REFUSAL_RETRY_S", 0.01)
    scene = Scene()
    decide, faults = scene.decider.decide, [Told()]

    async def swallows_its_cancellation(tickets: Any) -> Any:
        if faults:
            scene.lane.interrupt(faults.pop())
            with suppress(asyncio.CancelledError) if lost else nullcontext():
                await asyncio.sleep(5)
        return await decide(tickets)

    scene.decider.decide = swallows_its_cancellation  # type: ignore[method-assign]

    async with scene.running():
        await scene.until(lambda: scene.offsets == [2, 4])

        assert scene.output.opens == 2
        assert scene.readiness.is_ready


async def test_a_lane_that_is_interrupted_and_cancelled_at_once_ends() -> None:
    scene = Scene()
    task = asyncio.create_task(scene.lane.run())
    await scene.until(lambda: scene.offsets == [2, 4])

    scene.lane.interrupt(Told())
    scene.lane.drain()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_hang_is_told_with_the_offsets_of_the_tickets_under_way() -> None:
    scene = Scene()
    scene.decider.raising = [ScorerHung(1.0)]

    async with scene.running():
        await scene.until(lambda: scene.hung == [(0, 1)])

    assert scene.offsets == []


async def test_what_was_under_way_before_is_taken_alone_and_what_hung_alone_is_not_decided() -> None:
    scene = Scene(
        care=Care(
            2,
            (
                Left("t1", UnderWay(Doing.HUNG, range(2)), is_new=False),
                Left("t2", UnderWay(Doing.HUNG, range(1, 2), is_alone=True), is_new=True),
            ),
        )
    )

    async with scene.running():
        await scene.until(lambda: scene.offsets == [1, 2, 4])

    assert scene.decider.asked == [["T-0"], ["T-2", "T-3"]]
    assert [each.topic for records, _ in scene.output.committed for each in records] == [
        "dispatch",
        "review",
        "dispatch",
        "dispatch",
    ]
    assert scene.under_ways.notes == [
        "unpacking 0 4 alone",
        "reading 0 4",
        "decoding 0 1 alone",
        "deciding 0 1 alone",
        "committing 0 1 alone",
        "decoding 1 2 alone",
        "deciding 1 2 alone",
        "committing 1 2 alone",
        "forget t1 t2",
        "deciding 2 4",
        "withdraw",
    ]


async def test_duplicates_are_suppressed_collisions_reviewed_once_and_malformed_records_ride_along() -> None:
    scene = Scene(values=[ticket(1), ticket(1), ticket(1, "other"), ticket(1, "other"), b"{", None])
    scene.lane._pieces._pace = Pace(10, size=10)

    async with scene.running():
        await scene.until(lambda: scene.offsets == [6])

    ((records, _),) = scene.output.committed
    assert [each.topic for each in records] == ["dispatch", "review", "dead-letter"]
    assert records[2].value == b"{"


def _make(kind: type[BaseException]) -> BaseException:
    """An instance of an error class, whatever its constructor asks for."""
    for arguments in (("made for the test",), ()):
        with suppress(TypeError):
            return kind(*arguments)
    if kind is Unreachable:
        return Unreachable("TICKETGATE_KAFKA", "away", "start it")
    return ClaimsNotDurable(wanted=1, reached=0)
