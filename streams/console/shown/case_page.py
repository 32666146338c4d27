"""The timeline of a ticket, and lists that are read from topics: lines ready for a template.

Promise: pure; a value is shown as JSON that a person can read, cut where it is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from ticketgate.agents.effects.ledger import Entry
from ticketgate.codecs.values.printable import json_text
from ticketgate.store.ledger.entry_fields import EntryUnreadable
from ticketgate.streams.console.shown.foreign import Foreign, foreign
from ticketgate.streams.operations.review.moments import moment
from ticketgate.streams.operations.review.timeline import Event, what_of

MOST_JSON = 6_000


@dataclass(frozen=True, slots=True)
class EventLine:
    """One record of a timeline. after: how long after the one before it."""

    at: str
    after: str
    topic: str
    place: Foreign
    what: Foreign
    json: Foreign


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterLine:
    """One dead letter. place: where it lay, as one names it; empty where it does not say. sent_to: where a later record
    under its key ended."""

    place: str
    at: str
    key: Foreign
    stage: str
    code: str
    reason: Foreign
    sent_to: str


@dataclass(frozen=True, slots=True)
class Letters:
    """Dead letters that were read. count: how many there are in all; unreadable: batches that nobody can read."""

    lines: tuple[LetterLine, ...]
    count: int
    unreadable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectLine:
    """One effect whose outcome is open. why: what is known. was_sent: whether it was given to its provider."""

    key: str
    state: str
    tool: str
    arguments: Foreign
    provider: str
    subject: Foreign
    sends: int
    age: str
    why: Foreign
    is_readable: bool = True


def event_lines(events: Sequence[Event]) -> tuple[EventLine, ...]:
    """In their order."""
    found: list[EventLine] = []
    before: int | None = None
    for each in events:
        after = "" if before is None else gap(each.at_ms - before)
        before = each.at_ms
        found.append(
            EventLine(
                at=moment(each.at_ms),
                after=after,
                topic=each.topic,
                place=foreign(str(each.coordinate), most=300),
                what=foreign(what_of(each), most=300),
                json=foreign(json_text(each.value, indent=2), most=MOST_JSON),
            )
        )
    return tuple(found)


def gap(ms: int) -> str:
    """`+12 ms`, `+3.4 s`, `+2:01:00`."""
    if ms < 1_000:
        return f"+{ms} ms"
    return f"+{ms / 1000:.1f} s" if ms < 60_000 else f"+{timedelta(seconds=ms // 1000)}"


def effect_line(entry: Entry) -> EffectLine:
    """An open effect."""
    order = entry.order
    reasons = () if entry.verdict is None else entry.verdict.reasons
    return EffectLine(
        key=entry.key,
        state=str(entry.state),
        tool=order.command.tool,
        arguments=foreign(json_text(dict(order.command.arguments)), most=500),
        provider=order.provider,
        subject=foreign(order.subject, most=80),
        sends=entry.sends,
        age=str(timedelta(seconds=round(entry.age_s))),
        why=foreign(", ".join(reasons), most=400),
    )


def unreadable_line(entry: EntryUnreadable) -> EffectLine:
    """One that this version cannot read."""
    return EffectLine(
        key=entry.key,
        state="unreadable",
        tool="",
        arguments=foreign(""),
        provider="",
        subject=foreign(""),
        sends=0,
        age="",
        why=foreign(entry.why, most=400),
        is_readable=False,
    )
