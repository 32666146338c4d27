"""The whole case of a ticket, from all topics, as one timeline.

Promise: every committed record that bears the ticket's key, its id or the key of one of its effects is in it, from the
ticket's own on; in the order of their times. Reading costs what was written since then.
"""

from __future__ import annotations

from collections.abc import Collection
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
from ticketgate.streams.kafka.reading.salvage import Gap
from ticketgate.streams.kafka.reading.scanning import Progress, broker_errors, open_scanner, read_all
from ticketgate.streams.kafka.topics import missing_topics, topic_specs
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
            found += [_event(each) for each in records if _is_of(each, case, wanted)]
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
