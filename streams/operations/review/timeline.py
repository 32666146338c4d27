"""The whole case of a ticket, from all topics, as one timeline.

Promise: every committed record that bears the ticket's key, its id or the key of one of its effects is in it, from the
ticket's own on; in the order of their times. Copies of the ticket are among them whatever they are keyed by, and so is
the record that was decided on, however long before: its coordinate is in the decision. Reading costs what was written
since then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka import ConsumerRecord
from ticketgate.codecs.records import headers as names
from ticketgate.codecs.records.headers import header
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey, effect_key
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import JsonValue, decode
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.record_at import RecordAt
from ticketgate.streams.kafka.reading.salvage import Gap
from ticketgate.streams.kafka.reading.scanning import Progress, broker_errors, open_scanner, read_all
from ticketgate.streams.kafka.topics import missing_topics, topic_specs
from ticketgate.streams.lane.taking.intake import ticket_reader
from ticketgate.streams.operations.review.rows import Case

# A policy seldom asks for more effects than this of one ticket.
MOST_EFFECTS = 64
# The ticket was written before its decision, by as long as it waited for a worker at most.
BEFORE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the case. value: None for what is no JSON."""

    at_ms: int
    topic: str
    coordinate: Coordinate
    value: JsonValue


async def timeline(settings: Settings, case: Case, *, progress: Progress) -> list[Event]:
    """Raises `Unreachable`."""
    key = case.key
    is_copy = _copies(settings, case)

    def is_of(record: ConsumerRecord) -> bool:
        return is_copy(record) if record.topic == settings.topic_tickets else _is_of(record, case, wanted)

    wanted = {key, *(effect_key(IdempotencyKey(key), place) for place in range(MOST_EFFECTS))}
    connection = connection_of(settings)
    topics = [spec.name for spec in topic_specs(settings) if spec.retention is not None]
    async with admin_client(connection) as client, broker_errors(connection):
        missing = await missing_topics(client, topics)
    async with open_scanner(settings) as scanner:
        places = await scanner.partitions(*(topic for topic in topics if topic not in missing))
        extents = await scanner.extents(places)
        since = await scanner.offsets_at(places, case.at_ms - BEFORE_MS)
        ranges = {
            each: range(start, extents[each].stop)
            for each in places
            if (start := since[each]) is not None and start < extents[each].stop
        }
        found: list[Event] = []
        gaps: list[Gap] = []
        async for records in read_all(scanner, ranges, what="topics", progress=progress, unreadable=gaps):
            found += [_event(each) for each in records if is_of(each)]
    found += await _decided_on(settings, {each.coordinate for each in found}, _sources(settings, found))
    return sorted(found, key=lambda each: (each.at_ms, each.topic, each.coordinate.offset))


def what_of(event: Event) -> str:
    """One line of a record: of which kind it is, and what it says."""
    value: Any = event.value
    if not isinstance(value, dict):
        return "no JSON"
    kind = str(value.get("schema", "ticket/1"))
    if kind.startswith("settlement/"):
        return f"settlement: {value.get('action')} by {value.get('by')}"
    if kind.startswith("settled/"):
        return f"settled: {value.get('outcome')} {value.get('code') or ''} by {value.get('by')}".replace(
            "  ", " "
        )
    if kind.startswith("decision/"):
        verdict = value.get("verdict", {})
        person = f" by {value['settled']['by']}" if "settled" in value else ""
        effects = ", ".join(each["tool"] for each in value.get("effects", []))
        return f"{verdict.get('status')} at {verdict.get('stage')}{person}" + (
            f" → {effects}" if effects else ""
        )
    if kind.startswith("receipt/"):
        return f"effect {value.get('tool')}: {value.get('effect_state') or value.get('kind')}"
    return kind


def _copies(settings: Settings, case: Case) -> Callable[[ConsumerRecord], bool]:
    """Whether a record of `tickets` is of this ticket, keyed by it or not; of one that cannot be read its key tells."""
    read = ticket_reader(namespace=settings.namespace, max_bytes=settings.max_ticket_bytes)
    named = case.ticket_id.encode()

    def is_copy(record: ConsumerRecord) -> bool:
        is_keyed, value = record.key == named, record.value or b""
        # Reading costs more than looking for the id; what has something escaped is read anyway.
        if not is_keyed and named not in value and b"\\" not in value:
            return False
        again = read(value)
        return is_keyed if isinstance(again, Malformed) else again.key == case.key

    return is_copy


def _sources(settings: Settings, events: Iterable[Event]) -> set[Coordinate]:
    """Where the tickets lie that decisions among these were made from."""
    found: set[Coordinate] = set()
    for each in events:
        value = each.value
        told = value.get("coordinate") if isinstance(value, dict) else None
        if not isinstance(told, dict) or told.get("topic") != settings.topic_tickets:
            continue
        partition, offset = told.get("partition"), told.get("offset")
        if isinstance(partition, int) and isinstance(offset, int):
            found.add(Coordinate(settings.topic_tickets, partition, offset))
    return found


async def _decided_on(
    settings: Settings, known: Collection[Coordinate], wanted: set[Coordinate]
) -> list[Event]:
    """The tickets themselves, of those not known yet; without what retention has taken. Raises `Unreachable`."""
    connection, found = connection_of(settings), list[Event]()
    topics = RecordAt(connection)
    try:
        async with broker_errors(connection):
            for at in sorted(wanted.difference(known), key=str):
                if (record := await topics.fetch(at)) is not None:
                    found.append(_event(record))
    finally:
        await topics.close()
    return found


def _is_of(record: ConsumerRecord, case: Case, wanted: Collection[str]) -> bool:
    told = header(record.headers, names.IDEMPOTENCY_KEY)
    if told is None:
        return bool(record.key == case.ticket_id.encode())
    key = told.decode(errors="replace")
    return key in wanted or key.startswith(f"{case.key}:") or key.partition(":")[0] in wanted


def _event(record: ConsumerRecord) -> Event:
    value = decode(record.value or b"null", max_bytes=max(len(record.value or b""), 4))
    at = Coordinate(record.topic, record.partition, record.offset)
    return Event(record.timestamp, record.topic, at, None if isinstance(value, Malformed) else value)
