"""The demo: a broker, a Redis and a worker on this machine, sample tickets through them, where each went, and what a
scripted person made of those in review.

Promise: `run_demo` tells of every record that it sent, by the coordinate that outputs carry, and leaves nothing
running and no data behind.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiokafka import ConsumerRecord
from ticketgate.agents.plural import counted
from ticketgate.agents.policy import load_policy
from ticketgate.codecs.records.headers import COORDINATE, ERROR_REASON, ERROR_STAGE, header
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.config.settings import Guarantee, Settings
from ticketgate.streams.demo.ground import (
    POLL_S,
    VISIBLE_TIMEOUT_S,
    open_ground,
    running,
    send,
)
from ticketgate.streams.demo.person import Decided, settle_review, write_keys
from ticketgate.streams.demo.worker import GateWorker, has_taken
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.kafka.reading.topic_reading import read_whole
from ticketgate.streams.operations.review.rows import EFFECTIVE

# What a table shows of a verdict: a ticket that the model did not read has a reason for each question.
MOST_REASONS = 2


@dataclass(frozen=True, slots=True)
class Settled:
    """What a scripted person made of a record in review. outcome: accepted, rejected, returned, what else `settled`
    says, or `not told`. labels, effects: of what was accepted; changed: the questions answered otherwise than by the
    model."""

    outcome: str
    why: str
    labels: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def takes_effect(self) -> bool:
        """Whether the ticket is settled by it."""
        return self.outcome in EFFECTIVE


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the record at `coordinate` ended. `went_to` is dispatch, review, dead-letter, replayed, skipped or missing;
    `stage` is the gate that decided, `why` gives its first reasons. settled: by whom it was asked afterwards."""

    coordinate: Coordinate
    went_to: str
    stage: str
    why: str
    selected: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    settled: Settled | None = None


@dataclass(frozen=True, slots=True)
class DemoResult:
    """All outcomes, in the order of sending; `repeated` counts outputs beyond one for a record."""

    outcomes: tuple[Outcome, ...]
    guarantee: Guarantee
    broker: str
    seconds: float
    repeated: int

    def count(self, went_to: str) -> int:
        """How many records ended there."""
        return sum(outcome.went_to == went_to for outcome in self.outcomes)

    def count_settled(self, outcome: str) -> int:
        """How many records in review came to this by a person."""
        return sum(each.settled is not None and each.settled.outcome == outcome for each in self.outcomes)

    @property
    def is_complete(self) -> bool:
        """Whether every record is accounted for, exactly once, and each settlement took effect."""
        is_settled = all(each.settled is None or each.settled.takes_effect for each in self.outcomes)
        return not self.count("missing") and not self.repeated and is_settled


async def run_demo(
    records: Sequence[Record],
    *,
    policy: Path,
    say: Callable[[str], None],
    progress: Callable[[int], None],
) -> DemoResult:
    """Start the parts, send the records, wait until the worker has taken each, and settle what is in review. `say` gets
    a line for people at each step, `progress` the number of records taken so far. Raises `PartMissing`, `PartFailed`,
    and what start-up refuses.
    """
    async with AsyncExitStack() as stack:
        keys = write_keys(Path(stack.enter_context(TemporaryDirectory(prefix="ticketgate-demo-"))))
        ground = await stack.enter_async_context(open_ground(say))
        settings = ground.settings
        say("starting a worker with the local model")
        given = {**ground.given, "policy": str(policy), "roles": "decide,settle", "console_keys": str(keys)}
        worker = GateWorker(given)
        await stack.enter_async_context(running(worker))
        say(f"sending {counted(len(records), 'record')} to the topic {settings.topic_tickets}")
        started = time.monotonic()
        coordinates = await send(settings, settings.topic_tickets, records)
        await has_taken(worker, settings.topic_tickets, len(records), progress)
        seconds = time.monotonic() - started
        replays = worker.count("ticketgate_records_total", outcome="replayed")
        silent = replays + sum(record.value is None for record in records)
        outputs = await _outputs(settings, count=len(records) - silent)
        outcomes = _outcomes(records, coordinates, outputs, replays=replays)
        say("a scripted person settles what is in review")
        settled = await settle_review(settings, load_policy(policy), keys)
    return DemoResult(
        outcomes=tuple(replace(each, settled=_settled(settled.get(each.coordinate))) for each in outcomes),
        guarantee=ground.guarantee,
        broker=ground.broker,
        seconds=seconds,
        repeated=sum(len(found) - 1 for found in outputs.values()),
    )


async def _outputs(settings: Settings, *, count: int) -> dict[Coordinate, list[Outcome]]:
    """What a read_committed reader sees in the outputs, by the coordinate of the input that it is about; read until
    `count` inputs are there, or nothing more comes."""
    topics = (settings.topic_dispatch, settings.topic_review, settings.topic_dead_letter)
    deadline = time.monotonic() + VISIBLE_TIMEOUT_S
    while True:
        found: dict[Coordinate, list[Outcome]] = defaultdict(list)
        async for record in read_whole(connection_of(settings), topics):
            coordinate = Coordinate.parse((header(record.headers, COORDINATE) or b"").decode())
            found[coordinate].append(_read_output(record, coordinate))
        if len(found) >= count or time.monotonic() > deadline:
            return found
        await asyncio.sleep(POLL_S)


def _read_output(record: ConsumerRecord[bytes, bytes], coordinate: Coordinate) -> Outcome:
    if (stage := header(record.headers, ERROR_STAGE)) is not None:
        reason = header(record.headers, ERROR_REASON) or b""
        return Outcome(coordinate, "dead-letter", stage.decode(), why=reason.decode())
    decision = json.loads(record.value or b"{}")
    verdict = decision["verdict"]
    told, more = verdict["reasons"][:MOST_REASONS], len(verdict["reasons"]) - MOST_REASONS
    return Outcome(
        coordinate,
        "dispatch" if verdict["status"] == "accept" else "review",
        verdict["stage"],
        why="; ".join(told + ([f"and {more} more"] if more > 0 else [])),
        selected=tuple(decision["selected"]),
        effects=tuple(_effect(effect) for effect in decision["effects"]),
    )


def _settled(made: Decided | None) -> Settled | None:
    if made is None:
        return None
    effects = tuple(_effect(each.to_json()) for each in made.effects)
    outcome = "not told" if made.outcome is None else str(made.outcome)
    return Settled(outcome, made.why, made.labels, effects, made.changed)


def _effect(effect: Mapping[str, Any]) -> str:
    # The first argument tells the effects of a policy apart; all of them stand in the record.
    first = next(iter(effect["arguments"].values()), "")
    return f"{effect['tool']}({first})"


def _outcomes(
    records: Sequence[Record],
    coordinates: Sequence[Coordinate],
    outputs: Mapping[Coordinate, Sequence[Outcome]],
    *,
    replays: int,
) -> tuple[Outcome, ...]:
    """One outcome a record. One without an output was skipped, or replayed as the worker says, or is missing."""
    outcomes: list[Outcome] = []
    for record, coordinate in zip(records, coordinates, strict=True):
        if coordinate in outputs:
            outcomes.append(outputs[coordinate][0])
        elif record.value is None:
            outcomes.append(Outcome(coordinate, "skipped", "parse", why="a tombstone: nothing to read"))
        elif replays:
            replays -= 1
            outcomes.append(Outcome(coordinate, "replayed", "identity", why="sent before; its effect stands"))
        else:
            outcomes.append(Outcome(coordinate, "missing", "", why="no outcome was found"))
    return tuple(outcomes)
