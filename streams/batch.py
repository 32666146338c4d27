"""Take one batch of a lane from records to a commit.

Promise: a crash between any two steps never emits twice: what was claimed is found as its own at the next try, and
records and offset are committed together.
Relies on: a fenced output. Steps: 3 decode, 4 claim, 5 decide, 6 commit. Source: DESIGN section 4.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar, assert_never

from aiokafka import ConsumerRecord
from ticketgate.agents.decide import Decision
from ticketgate.codecs.identity import IdempotencyKey
from ticketgate.codecs.verdict import Stage, Status
from ticketgate.store.claims import ClaimResult, Claims, Collision, Duplicate, Owned
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.deciding import Decider, ScorerHung, decide_all
from ticketgate.streams.intake import Arrival, Intake, take_in
from ticketgate.streams.records import RecordWriter
from ticketgate.streams.telemetry import Telemetry
from ticketgate.streams.tracing import BatchSpan, Tracing, Untraced
from ticketgate.streams.transaction import Outgoing, Output

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchParts:
    """What taking a batch needs, the same for all lanes of a process. `now` is for `decided_at` alone."""

    claims: Claims
    decider: Decider
    writer: RecordWriter
    telemetry: Telemetry
    namespace: str
    max_ticket_bytes: int
    now: Callable[[], datetime]
    tracing: Tracing = field(default_factory=Untraced)


class BatchHung(Exception):
    """The scorer hung on the tickets at these offsets. The process must end; nothing of the batch was committed."""

    def __init__(self, cause: ScorerHung, *, offsets: Sequence[int]) -> None:
        super().__init__(f"{cause}; tickets at offsets {', '.join(map(str, offsets))}")
        self.offsets = tuple(offsets)


@dataclass(frozen=True, slots=True)
class Decided:
    """A ticket with its decision, and the key under which that is emitted."""

    arrival: Arrival
    decision: Decision
    key: IdempotencyKey


async def take_batch(
    parts: BatchParts,
    records: Sequence[ConsumerRecord],
    *,
    token: LaneToken,
    hangs: Mapping[int, int],
    output: Output,
) -> int:
    """Take a batch, which is not empty, of one partition; returns the offset that is now committed.

    `token` is the lane's right to write to Redis; `hangs` tells at which offsets a worker hung before, and how
    often. Whatever is raised, nothing is known of the batch then; `BatchHung` says where the scorer hung.
    """
    intake = take_in(records, namespace=parts.namespace, max_bytes=parts.max_ticket_bytes)  # 3
    wanted = [arrival.claim for arrival in intake.arrivals]
    with parts.tracing.batch(
        token.topic, token.partition, [each.headers for each in intake.arrivals]
    ) as span:
        claimed = await _timed(
            parts, "claim", parts.claims.claim(wanted, token=token, claimed=intake.next_offset)
        )  # 4
        decided = await _timed(parts, "decide", _decide(parts, intake.arrivals, claimed, hangs))  # 5
        outgoing = _write(parts, intake, decided, span)
        await _timed(parts, "commit", output.commit(outgoing, intake.next_offset))  # 6
    # Not with the next batch: there may be none for long, and offsets that are reset meanwhile would go unnoticed.
    await parts.claims.mark_committed(token, intake.next_offset)
    _count(parts.telemetry, token.topic, intake, claimed, decided)
    return intake.next_offset


async def _decide(
    parts: BatchParts,
    arrivals: Sequence[Arrival],
    claimed: Sequence[ClaimResult],
    hangs: Mapping[int, int],
) -> tuple[Decided, ...]:
    owned = [arrival for arrival, result in zip(arrivals, claimed, strict=True) if isinstance(result, Owned)]
    offsets = [arrival.claim.coordinate.offset for arrival in owned]
    try:
        decisions = iter(
            await decide_all(
                parts.decider,
                [arrival.ticket for arrival in owned],
                hangs=[hangs.get(offset, 0) for offset in offsets],
            )
        )
    except ScorerHung as err:
        raise BatchHung(err, offsets=[offsets[place] for place in err.places]) from err
    decided: list[Decided] = []
    for arrival, result in zip(arrivals, claimed, strict=True):
        match result:
            case Owned():
                decided.append(Decided(arrival, next(decisions), arrival.claim.key))
            case Collision(owner=owner):
                reason = f"the id was used before for a ticket that says something else, at {owner}"
                refusal = parts.decider.refuse(Stage.IDENTITY, [reason])
                decided.append(Decided(arrival, refusal, arrival.claim.for_collision().key))
            case Duplicate():
                pass
            case _:
                assert_never(result)
    return tuple(decided)


def _write(parts: BatchParts, intake: Intake, decided: Sequence[Decided], span: BatchSpan) -> list[Outgoing]:
    now = parts.now()
    records = [
        span.stamp(parts.writer.decision(each.arrival, each.decision, key=each.key, at=now))
        for each in decided
    ]
    # A dead letter keeps its headers as they came.
    return records + [parts.writer.dead_letter(unreadable) for unreadable in intake.unreadable]


async def _timed(parts: BatchParts, step: str, work: Awaitable[T]) -> T:
    started = time.perf_counter()
    result = await work
    parts.telemetry.step(step, time.perf_counter() - started)
    return result


def _count(
    telemetry: Telemetry,
    topic: str,
    intake: Intake,
    claimed: Sequence[ClaimResult],
    decided: Sequence[Decided],
) -> None:
    replayed = sum(isinstance(result, Duplicate) for result in claimed)
    collided = sum(isinstance(result, Collision) for result in claimed)
    accepted = sum(each.decision.verdict.status is Status.ACCEPT for each in decided)
    telemetry.records(topic, "tombstone", intake.tombstones)
    telemetry.records(topic, "malformed", len(intake.unreadable))
    telemetry.records(topic, "replayed", replayed)
    telemetry.records(topic, "dispatched", accepted)
    telemetry.records(topic, "review", len(decided) - accepted)
    telemetry.gate_outcome(Stage.IDENTITY, "pass", len(decided) - collided)
    telemetry.gate_outcome(Stage.IDENTITY, "replayed", replayed)
    telemetry.gate_outcome(Stage.IDENTITY, "review", collided)
    telemetry.decided(each.decision for each in decided)
    for unreadable in intake.unreadable:
        telemetry.gate_outcome(unreadable.malformed.stage, "malformed")
        telemetry.dead_lettered(unreadable.malformed.code)
