"""Take one batch of a lane from records to a commit.

Promise: a crash between any two steps never emits twice: what was claimed is found as its own at the next try, and
records and offset are committed together. What differs between tickets and proposals is their `Work`.
Relies on: a fenced output. Steps: 3 decode, 4 claim, 5 decide, 6 commit. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar, assert_never

from aiokafka import ConsumerRecord
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.times import to_milliseconds
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.claims import ClaimResult, Claims, Collision, Duplicate, Owned
from ticketgate.store.lane_state.underway import Doing, UnderWay
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.taking.intake import Arrival, Intake, Reader, take_in
from ticketgate.streams.lane.taking.records import RecordWriter
from ticketgate.streams.lane.taking.tracing import BatchSpan, Tracing, Untraced
from ticketgate.streams.lane.transaction import Outgoing, Output

T = TypeVar("T")
NONE_ASIDE: Mapping[int, str] = MappingProxyType({})
D = TypeVar("D")


class HasVerdict(Protocol):
    """What was said of a document."""

    @property
    def verdict(self) -> Verdict:
        """The last gate's word."""
        ...


J = TypeVar("J", bound=HasVerdict)


class Work(Protocol[D, J]):
    """What a role does with documents that it owns: ticket_work.py, proposal_work.py."""

    async def decide(self, arrivals: Sequence[Arrival[D]], *, token: LaneToken) -> Sequence[J]:
        """5. One outcome an arrival, in order."""
        ...

    async def give_up(
        self, arrivals: Sequence[Arrival[D]], objection: str, *, token: LaneToken
    ) -> Sequence[J]:
        """5. The outcomes of documents that are not decided, as deciding them ends the process: for a person."""
        ...

    def collided(self, arrival: Arrival[D], owner: Coordinate) -> J:
        """The outcome of a document whose key belongs to another that says something else."""
        ...

    def set_aside(self, arrival: Arrival[D], reason: str) -> J:
        """The outcome of a document that alone does not pass (narrowing.py): to review, for `reason`."""
        ...

    def write(
        self, arrival: Arrival[D], outcome: J, *, key: IdempotencyKey, at: datetime
    ) -> Sequence[Outgoing]:
        """The records that tell of an outcome, under the key that was claimed for it."""
        ...

    def write_bare(
        self, arrival: Arrival[D], outcome: J, *, key: IdempotencyKey, at: datetime
    ) -> Sequence[Outgoing]:
        """As `write`, without all that the producer gave but what names the document."""
        ...

    def count(self, outcomes: Sequence[J]) -> None:
        """Count outcomes that were committed."""
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """A batch of one record that is taken with nothing else in the process. objection: why it is not decided any more;
    empty if it is. on_decided: called between steps 5 and 6."""

    objection: str
    on_decided: Callable[[], Awaitable[None]]


class BatchTaker(Protocol):
    """How a lane takes a batch, whatever is in it."""

    async def take(
        self,
        records: Sequence[ConsumerRecord],
        *,
        token: LaneToken,
        output: Output,
        aside: Mapping[int, str] = NONE_ASIDE,
        alone: Alone | None = None,
    ) -> int:
        """Take a batch, which is not empty, of one partition; returns the offset that is now committed.

        `token` is the lane's right to write to Redis; `aside` tells which offsets to set aside, and why (narrowing.py);
        `alone` is given for one record that is taken with care (careful.py). Whatever is raised, nothing is known of
        the batch then; `BatchHung` says where the scorer hung.
        """
        ...


class BatchHung(Exception):
    """Deciding hung on the records at these offsets. The process must end; nothing of the batch was committed."""

    def __init__(self, cause: Exception, *, offsets: Sequence[int]) -> None:
        super().__init__(f"{cause}; tickets at offsets {', '.join(map(str, offsets))}")
        self.offsets = tuple(offsets)


@dataclass(frozen=True, slots=True)
class Decided(Generic[D, J]):
    """A document with its outcome, and the key under which that is emitted."""

    arrival: Arrival[D]
    outcome: J
    key: IdempotencyKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimingTaker(Generic[D, J]):
    """Takes batches of documents that are claimed one by one. The same for all lanes of a role. `now` is for
    `decided_at` alone."""

    claims: Claims
    read: Reader[D]
    work: Work[D, J]
    writer: RecordWriter
    telemetry: Telemetry
    now: Callable[[], datetime]
    tracing: Tracing = field(default_factory=Untraced)

    async def take(
        self,
        records: Sequence[ConsumerRecord],
        *,
        token: LaneToken,
        output: Output,
        aside: Mapping[int, str] = NONE_ASIDE,
        alone: Alone | None = None,
    ) -> int:
        """As `BatchTaker`."""
        intake = take_in(records, self.read, aside=aside)  # 3
        witness = Witness.of(records[-1])
        wanted = [arrival.claim for arrival in intake.arrivals]
        with self.tracing.batch(
            token.topic, token.partition, [each.headers for each in intake.arrivals]
        ) as span:
            claimed = await self._timed(
                "claim",
                self.claims.claim(
                    wanted,
                    token=token,
                    claimed=intake.next_offset,
                    under_way=deciding(records[0].offset, intake.next_offset, alone),
                    witness=witness,
                ),
            )  # 4
            decided = await self._timed(
                "decide", self._decide(intake.arrivals, claimed, alone, token, aside)
            )  # 5
            outgoing = self._write(intake, decided, span, aside)
            if alone is not None:
                await alone.on_decided()
            await self._timed("commit", output.commit(outgoing, intake.next_offset))  # 6
        # Not with the next batch: there may be none for long, and offsets that are reset meanwhile would go unnoticed.
        await self.claims.mark_committed(token, intake.next_offset, witness)
        self._count(token.topic, intake, claimed, decided)
        return intake.next_offset

    async def _decide(
        self,
        arrivals: Sequence[Arrival[D]],
        claimed: Sequence[ClaimResult],
        alone: Alone | None,
        token: LaneToken,
        aside: Mapping[int, str],
    ) -> tuple[Decided[D, J], ...]:
        owned = [
            arrival
            for arrival, result in zip(arrivals, claimed, strict=True)
            if isinstance(result, Owned) and arrival.claim.coordinate.offset not in aside
        ]
        if alone is not None and alone.objection:
            outcomes = iter(await self.work.give_up(owned, alone.objection, token=token))
        else:
            outcomes = iter(await self.work.decide(owned, token=token))
        decided: list[Decided[D, J]] = []
        for arrival, result in zip(arrivals, claimed, strict=True):
            match result:
                case Owned():
                    reason = aside.get(arrival.claim.coordinate.offset)
                    outcome = next(outcomes) if reason is None else self.work.set_aside(arrival, reason)
                    decided.append(Decided(arrival, outcome, arrival.claim.key))
                case Collision(owner=owner):
                    refusal = self.work.collided(arrival, owner)
                    decided.append(Decided(arrival, refusal, arrival.claim.for_collision().key))
                case Duplicate():
                    pass
                case _:
                    assert_never(result)
        return tuple(decided)

    def _write(
        self,
        intake: Intake[D],
        decided: Sequence[Decided[D, J]],
        span: BatchSpan,
        aside: Mapping[int, str],
    ) -> list[Outgoing]:
        now = to_milliseconds(self.now())
        records: list[Outgoing] = []
        for each in decided:
            is_aside = each.arrival.claim.coordinate.offset in aside
            write = self.work.write_bare if is_aside else self.work.write
            records += map(span.stamp, write(each.arrival, each.outcome, key=each.key, at=now))
        return records + self.writer.dead_letters(intake.unreadable, bare=aside)

    async def _timed(self, step: str, work: Awaitable[T]) -> T:
        started = time.perf_counter()
        result = await work
        self.telemetry.step(step, time.perf_counter() - started)
        return result

    def _count(
        self,
        topic: str,
        intake: Intake[D],
        claimed: Sequence[ClaimResult],
        decided: Sequence[Decided[D, J]],
    ) -> None:
        replayed = sum(isinstance(result, Duplicate) for result in claimed)
        collided = sum(isinstance(result, Collision) for result in claimed)
        telemetry = self.telemetry
        telemetry.records(topic, "tombstone", intake.tombstones)
        telemetry.put_aside(topic, (each.malformed for each in intake.unreadable))
        telemetry.records(topic, "replayed", replayed)
        for place, count in Counter(whereto(each.outcome.verdict) for each in decided).items():
            telemetry.records(topic, place, count)
        telemetry.gate_outcome(Stage.IDENTITY, "pass", len(decided) - collided)
        telemetry.gate_outcome(Stage.IDENTITY, "replayed", replayed)
        telemetry.gate_outcome(Stage.IDENTITY, "review", collided)
        self.work.count([each.outcome for each in decided])


def deciding(first: int, stop: int, alone: Alone | None) -> UnderWay:
    """What a lane has under way that decides these offsets."""
    return UnderWay(Doing.DECIDING, range(first, stop), is_alone=alone is not None)


def whereto(verdict: Verdict) -> str:
    """What metrics call the place that a verdict sends a document to."""
    if verdict.status is Status.ACCEPT:
        return "dispatched"
    return "repairs" if verdict.status is Status.REPAIR else "review"
