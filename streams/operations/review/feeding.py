"""The view brought up to date from the topics: `review`, `settlements` and `settled`, committed records alone.

Promise: what was written before the call is in the view after it. A topic that was made anew, or that lost its end, has
the view made anew. What the topics have forgotten for its age, the view forgets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka import ConsumerRecord, TopicPartition
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.settled import decode_settled
from ticketgate.codecs.records.settlement import decode_settlement, value_digest
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import JsonValue, decode
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.internals import client_of_admin
from ticketgate.streams.kafka.reading.salvage import Gap
from ticketgate.streams.kafka.reading.scanning import Progress, Scanner, broker_errors, open_scanner, read_all
from ticketgate.streams.kafka.topic_ids import topic_ids
from ticketgate.streams.operations.review.rows import Kind, Reviewed, Sent, Told
from ticketgate.streams.operations.review.view import View


async def open_view(settings: Settings, path: Path, *, progress: Progress) -> View:
    """The view, up to date. Raises `Unreachable`, `ConditionFailed` for a topic that is not there, and OSError."""
    async with open_scanner(settings) as scanner:
        source = await find_source(settings, scanner)
        view = open_fitting(settings, path, source, await scanner.extents(source.places))
        await catch_up(settings, scanner, view, source.places, progress=progress)
    forget_the_old(settings, view)
    return view


@dataclass(frozen=True, slots=True)
class Source:
    """What a view is made from. places: the topics' partitions. about: by which it is known again, in the view."""

    places: tuple[TopicPartition, ...]
    about: Mapping[str, str]


async def find_source(settings: Settings, scanner: Scanner) -> Source:
    """The topics as they are now. Raises `Unreachable`, and `ConditionFailed` for one that is not there."""
    topics = (settings.topic_review, settings.topic_settlements, settings.topic_settled)
    places = await scanner.partitions(*topics)
    ids = await _ids(settings, scanner, topics)
    about = {"namespace": settings.namespace, **{f"topic {name}": ids.get(name, "") for name in topics}}
    return Source(places, about)


def claim_ttl_ms(settings: Settings) -> int:
    """How long a record in review can be settled."""
    return round(settings.claim_ttl.total_seconds() * 1000)


def open_fitting(
    settings: Settings, path: Path, source: Source, extents: Mapping[TopicPartition, range]
) -> View:
    """The view of this source; made anew where it knows more than there is. Raises OSError."""
    ttl_ms = claim_ttl_ms(settings)
    view = View(path, about=source.about, claim_ttl_ms=ttl_ms)
    known = view.offsets()
    if any(known.get((each.topic, each.partition), 0) > extents[each].stop for each in source.places):
        view.close()
        view = View(path, about=source.about, claim_ttl_ms=ttl_ms, anew=True)
    return view


async def catch_up(
    settings: Settings,
    scanner: Scanner,
    view: View,
    places: Sequence[TopicPartition],
    *,
    progress: Progress,
) -> bool:
    """Take in all that was written by now; whether there was anything."""
    news = _news(await scanner.extents(places), view.offsets())
    if news:
        await feed(settings, scanner, view, news, progress=progress)
    return bool(news)


def forget_the_old(settings: Settings, view: View) -> None:
    """Forget what the topics have forgotten for its age."""
    kept_ms = round((settings.outputs_retention + settings.tickets_segment).total_seconds() * 1000)
    view.forget_before(now_ms() - kept_ms)


async def feed(
    settings: Settings,
    scanner: Scanner,
    view: View,
    news: Mapping[TopicPartition, range],
    *,
    progress: Progress,
) -> None:
    """Take in what lies in these ranges."""
    gaps: list[Gap] = []
    async for records in read_all(scanner, news, what="review", progress=progress, unreadable=gaps):
        rows = await asyncio.to_thread(rows_of, records, settings)
        last = records[-1]
        view.add(rows, {(last.topic, last.partition): last.offset + 1})
    # Markers of transactions lie behind the last records.
    view.add([], {(each.topic, each.partition): offsets.stop for each, offsets in news.items()})


def _news(
    extents: Mapping[TopicPartition, range], known: Mapping[tuple[str, int], int]
) -> dict[TopicPartition, range]:
    found: dict[TopicPartition, range] = {}
    for each, offsets in extents.items():
        start = max(offsets.start, known.get((each.topic, each.partition), 0))
        if start < offsets.stop:
            found[each] = range(start, offsets.stop)
    return found


async def _ids(settings: Settings, scanner: Scanner, topics: Sequence[str]) -> Mapping[str, str]:
    connection = connection_of(settings)
    async with admin_client(connection) as client, broker_errors(connection):
        return await topic_ids(client_of_admin(client), topics)


def now_ms() -> int:
    """This machine's clock, in ms since 1970: for ages alone."""
    return round(time.time() * 1000)


def rows_of(records: Sequence[ConsumerRecord], settings: Settings) -> list[Reviewed | Sent | Told]:
    """What the view keeps of records of one of the three topics; none of what cannot be read."""
    read = {
        settings.topic_review: _reviewed,
        settings.topic_settlements: _sent,
        settings.topic_settled: _told,
    }[records[0].topic]
    found = (read(record, record.value) for record in records if record.value is not None)
    return [row for row in found if row is not None]


def _sent(record: ConsumerRecord, value: bytes) -> Sent | None:
    read = decode_settlement(value, max_bytes=max(len(value), 1))
    if isinstance(read, Malformed):
        return None
    return Sent(
        coordinate=_place(record),
        id=read.id,
        key=read.key,
        review=str(read.review),
        action=str(read.action),
        by=read.by,
        at_ms=record.timestamp,
    )


def _told(record: ConsumerRecord, value: bytes) -> Told | None:
    read = decode_settled(value, max_bytes=max(len(value), 1))
    if isinstance(read, Malformed):
        return None
    return Told(
        coordinate=str(read.coordinate),
        id=read.id,
        key=read.key,
        review=str(read.review),
        action=str(read.action),
        by=read.by,
        at_ms=record.timestamp,
        outcome=str(read.outcome),
        code=read.code,
        reasons=read.reasons,
        labels=read.labels,
    )


def _reviewed(record: ConsumerRecord, value: bytes) -> Reviewed | None:
    document = decode(value, max_bytes=max(len(value), 1))
    if not isinstance(document, dict):
        return None
    kind, subject = _kind(document)
    key = document.get("idempotency_key")
    verdict = _object(document.get("verdict"))
    policy = _object(document.get("policy"))
    ticket = _object(document.get("ticket"))
    return Reviewed(
        place=_place(record),
        key=key if isinstance(key, str) else subject,
        ticket_id=subject,
        tenant=str(document.get("tenant") or ""),
        kind=kind,
        at_ms=record.timestamp,
        sha256=value_digest(value),
        stage=str(verdict.get("stage", "")),
        policy=str(policy.get("name", "")),
        rules=tuple(str(each.get("rule")) for each in _dicts(document.get("violations"))),
        labels=_texts(document.get("selected")),
        reasons=_texts(verdict.get("reasons")),
        text=text_of(ticket.get("state")),
    )


def _kind(value: Mapping[str, JsonValue]) -> tuple[Kind, str]:
    schema = str(value.get("schema", ""))
    if schema.startswith("decision/"):
        is_collision = ":" in str(value.get("idempotency_key", ""))
        return Kind.COLLISION if is_collision else Kind.DECISION, str(value.get("ticket_id", ""))
    kind = Kind.CASE if schema.startswith("case-decision/") else Kind.RECEIPT
    return kind, str(value.get("case_id") or value.get("subject") or "")


def text_of(state: JsonValue) -> str:
    """A ticket's state as text to search and to show: the texts and numbers in it, in their order."""
    found: list[str] = []
    todo: list[JsonValue] = [state]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo += reversed(list(item.values()))
        elif isinstance(item, list):
            todo += reversed(item)
        elif item is not None:
            found.append(str(item))
    return " ".join(" ".join(found).split())


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _place(record: ConsumerRecord) -> str:
    return str(Coordinate(record.topic, record.partition, record.offset))
