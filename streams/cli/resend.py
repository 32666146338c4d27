"""What becomes of dead letters that are sent again: ready, or held back with the reason.

Promise: what is ready is a ticket that a worker with these settings reads, unless `unmended` asks for the others too.
Identity is the ticket's own, as ever: a corrected copy was never claimed and has its one effect; a second copy of the
same is a duplicate and has none. So nothing marks a record as sent again: a header of ours would be stripped at the
gate, and one of another name would reach the readers of `dispatch`, whom it does not concern.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ticketgate.codecs.headers import foreign
from ticketgate.codecs.malformed import Malformed
from ticketgate.codecs.ticket import decode_ticket
from ticketgate.streams.cli.envelope import Record
from ticketgate.streams.dead_letters import DeadLetter, read_dead_letter
from ticketgate.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Ready:
    """To be sent as `record`; `ticket_id` is None for what is still no ticket."""

    letter: DeadLetter
    record: Record
    ticket_id: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """Not to be sent, and why."""

    letter: DeadLetter
    reason: str


def prepare(record: Record, *, settings: Settings, now_ms: int, by_key: bool, unmended: bool) -> Ready | Held:
    """Prepare a dead letter, as it lies there or as a person mended it: our headers off, its own kept."""
    letter = read_dead_letter(record)
    if record.value is None:
        return Held(letter, "a tombstone, which workers skip")
    ticket = decode_ticket(record.value, max_bytes=settings.max_ticket_bytes)
    ticket_id = None
    if not isinstance(ticket, Malformed):
        ticket_id = ticket.id
    elif letter.content:
        return Held(letter, _not_the_original(letter))
    elif not unmended:
        return Held(letter, f"{ticket.reason}; mend it")
    return Ready(
        letter,
        Record(
            key=record.key,
            value=record.value,
            headers=foreign(record.headers),
            partition=None if by_key else _partition(letter, settings),
            timestamp_ms=_timestamp(record, settings, now_ms),
        ),
        ticket_id,
    )


def _not_the_original(letter: DeadLetter) -> str:
    if letter.content == "batch":
        return "the bytes of a batch that nobody could read"
    return f"too large for dead-letter, a digest stands for it; its own topic may still have it at {letter.coordinate}"


def _partition(letter: DeadLetter, settings: Settings) -> int | None:
    """Where it lay, since records of one ticket keep the order of their partition."""
    at = letter.coordinate
    return at.partition if at is not None and at.topic == settings.topic_tickets else None


def _timestamp(record: Record, settings: Settings, now_ms: int) -> int | None:
    """Its own time, unless retention, which goes by that, might take the record before it is read."""
    if record.timestamp_ms is None:
        return None
    age = timedelta(milliseconds=now_ms - record.timestamp_ms)
    return record.timestamp_ms if age < settings.tickets_retention / 2 else None
