"""The demo that kills: two workers, one of them ended by SIGKILL in the middle, and what became of every record.

Promise: what is told is read from the topics alone, as anybody may read them: each ticket and each record that cannot
be read must have exactly one outcome, whoever died. Relies on a broker with transactions.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ticketgate.agents.plural import counted
from ticketgate.codecs.records.headers import COORDINATE, header
from ticketgate.codecs.records.identity import Coordinate, fingerprint, ticket_key
from ticketgate.codecs.records.ticket import decode_ticket
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import JsonValue, decode, encode
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.demo.ground import OUTCOME_TIMEOUT_S, POLL_S, open_ground, running, send
from ticketgate.streams.demo.worker import GateWorker
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.kafka.reading.topic_reading import read_whole
from ticketgate.streams.parts.failures import PartMissing

# The samples so many times, each under ids of its own: enough that a worker is in the middle of it when it is killed.
COPIES = 4
# What the group waits for a member that was killed. Kafka's least is 6 s unless the broker is told otherwise.
SESSION = "6s"
# A look at the victim's counter; between two of them it decides a few tickets.
WATCH_S = 0.02
# It has committed some by then, and has most of its share before it.
KILL_AFTER = 20


@dataclass(frozen=True, slots=True)
class KillResult:
    """What became of all. records: sent. wanted: outcomes that there must be, one each. taken: records that the victim
    had taken when it was last asked. lost, doubled: outcomes that are missing, and that are too many."""

    records: int
    wanted: int
    taken: int
    seconds: float
    lost: int
    doubled: int

    @property
    def is_complete(self) -> bool:
        """Whether each has exactly one outcome."""
        return not self.lost and not self.doubled


async def run_kill_demo(
    records: Sequence[Record],
    *,
    policy: Path,
    say: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> KillResult:
    """Start the parts and two workers, send the records COPIES times, kill one worker, and wait for the other.

    `progress` gets how many outcomes there are, and how many there must be. Raises `PartMissing` without a broker that
    has transactions, `PartFailed`, and what start-up refuses.
    """
    copies = [_copy(record, number) for number in range(1, COPIES + 1) for record in records]
    async with AsyncExitStack() as stack:
        ground = await stack.enter_async_context(open_ground(say))
        if ground.guarantee != "exactly_once":
            raise PartMissing(
                "--kill shows what takes transactions, and this broker has none; install Java 17 and Maven, then"
                " `make kafka-jars`"
            )
        say("starting two workers with the local model")
        given = {**ground.given, "policy": str(policy), "session_timeout": SESSION}
        victim, other = GateWorker(given), GateWorker(given)
        await asyncio.gather(*(stack.enter_async_context(running(each)) for each in (victim, other)))
        say(f"sending {counted(len(copies), 'record')} to the topic {ground.settings.topic_tickets}")
        started = time.monotonic()
        coordinates = await send(ground.settings, ground.settings.topic_tickets, copies)
        taken = await asyncio.to_thread(_kill_in_the_middle, victim, started)
        say(f"killed worker 1 (kill -9) once it had taken {counted(taken, 'record')}; worker 2 takes over")
        places = _places(copies, coordinates)
        wanted = len(set(places.values()))
        found = await _wait(ground.settings, places, wanted, progress)
        ended = time.monotonic()
    return KillResult(
        records=len(copies),
        wanted=wanted,
        taken=taken,
        seconds=ended - started,
        lost=wanted - len(found),
        doubled=sum(found.values()) - len(found),
    )


def _kill_in_the_middle(victim: GateWorker, started: float) -> int:
    """Kill it once it has taken some; how many by its own count."""
    taken = 0
    while time.monotonic() - started < OUTCOME_TIMEOUT_S:
        taken = victim.count("ticketgate_records_total")
        if taken >= KILL_AFTER:
            break
        time.sleep(WATCH_S)
    victim.kill()
    return taken


async def _wait(
    settings: Settings, places: dict[Coordinate, str], wanted: int, progress: Callable[[int, int], None]
) -> Counter[str]:
    """How many outcomes there are of each, once all have one, or nothing more comes."""
    moved, seen = time.monotonic(), -1
    while True:
        found = await _outcomes(settings, places)
        progress(len(found), wanted)
        if len(found) != seen:
            moved, seen = time.monotonic(), len(found)
        if seen >= wanted or time.monotonic() - moved > OUTCOME_TIMEOUT_S:
            return found
        await asyncio.sleep(POLL_S)


async def _outcomes(settings: Settings, places: dict[Coordinate, str]) -> Counter[str]:
    topics = (settings.topic_dispatch, settings.topic_review, settings.topic_dead_letter)
    found: Counter[str] = Counter()
    async for record in read_whole(connection_of(settings), topics):
        found[places[Coordinate.parse((header(record.headers, COORDINATE) or b"").decode())]] += 1
    return found


def _places(records: Sequence[Record], coordinates: Sequence[Coordinate]) -> dict[Coordinate, str]:
    """What each record is, by where it lies: one ticket under one id however often it was sent, or itself. Tombstones
    are nothing."""
    places: dict[Coordinate, str] = {}
    for record, coordinate in zip(records, coordinates, strict=True):
        if record.value is None:
            continue
        ticket = decode_ticket(record.value)
        places[coordinate] = (
            str(coordinate)
            if isinstance(ticket, Malformed)
            else f"{ticket_key('demo', ticket)}/{fingerprint(ticket)}"
        )
    return places


def _copy(record: Record, number: int) -> Record:
    """The record under an id and a key of its own; what cannot be read stays as it is."""
    value = None if record.value is None else decode(record.value)
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return record
    named: dict[str, JsonValue] = {
        name: f"{value[name]}-{number}" for name in ("id", "idempotency_key") if name in value
    }
    key = None if record.key is None else record.key + f"-{number}".encode()
    return replace(record, key=key, value=encode({**value, **named}))
