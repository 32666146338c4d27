"""What becomes of dead letters that are sent again: ready, or held back with the reason.

Promise: each goes back to the input it came from, `tickets`, `proposals` or `settlements`, and what is ready is a
document that a worker with these settings reads, unless `unmended` asks for the others too.
Identity is the record's own, as ever: a corrected copy was never claimed and has its one effect; a second copy of the
same is a duplicate and has none. So nothing marks a record as sent again: a header of ours would be stripped at the
gate, and one of another name would reach the readers of `dispatch`, whom it does not concern.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ticketgate.codecs.records.headers import foreign
from ticketgate.codecs.records.proposal import decode_proposal
from ticketgate.codecs.records.settlement import decode_settlement
from ticketgate.codecs.records.ticket import decode_ticket
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.lane.taking.dead_letters import DeadLetter, read_dead_letter


@dataclass(frozen=True, slots=True)
class Ready:
    """To be sent to `topic` as `record`, which `says` what it is, such as `ticket T-1`."""

    letter: DeadLetter
    topic: str
    record: Record
    says: str


@dataclass(frozen=True, slots=True)
class Held:
    """Not to be sent, and why."""

    letter: DeadLetter
    reason: str


def prepare(record: Record, *, settings: Settings, now_ms: int, by_key: bool, unmended: bool) -> Ready | Held:
    """Prepare a dead letter, as it lies there or as a person mended it: our headers off, its own kept."""
    letter = read_dead_letter(record)
    if letter.coordinate is not None and letter.coordinate.topic == settings.topic_dispatch:
        return Held(letter, f"it lay on {settings.topic_dispatch}, which workers alone write")
    if record.value is None:
        return Held(letter, "a tombstone, which workers skip")
    topic = _input(letter, settings)
    says = read_as_input(record.value, topic, settings)
    if not isinstance(says, Malformed):
        pass
    elif letter.content:
        return Held(letter, _not_the_original(letter))
    elif not unmended:
        return Held(letter, f"{says.reason}; mend it")
    return Ready(
        letter,
        topic,
        Record(
            key=record.key,
            value=record.value,
            headers=foreign(record.headers),
            partition=None if by_key else _partition(letter, topic),
            timestamp_ms=_timestamp(record, letter, settings, now_ms),
        ),
        "as it is, which no worker reads yet" if isinstance(says, Malformed) else says,
    )


def _input(letter: DeadLetter, settings: Settings) -> str:
    """The topic that it is sent to: what lay on no input is taken for a ticket."""
    others = (settings.topic_proposals, settings.topic_settlements)
    if letter.coordinate is not None and letter.coordinate.topic in others:
        return letter.coordinate.topic
    return settings.topic_tickets


def read_as_input(value: bytes, topic: str, settings: Settings) -> str | Malformed:
    """What workers find in it on the topics of proposals and settlements, and on any other as on that of tickets:
    `ticket T-1`."""
    if topic == settings.topic_settlements:
        settlement = decode_settlement(value, max_bytes=settings.max_ticket_bytes)
        if isinstance(settlement, Malformed):
            return settlement
        return f"settlement {settlement.id} of ticket {settlement.ticket_id}"
    if topic == settings.topic_proposals:
        proposal = decode_proposal(value, max_bytes=settings.max_ticket_bytes)
        if isinstance(proposal, Malformed):
            return proposal
        return f"case {proposal.case_id}, attempt {proposal.attempt}"
    ticket = decode_ticket(value, max_bytes=settings.max_ticket_bytes)
    return ticket if isinstance(ticket, Malformed) else f"ticket {ticket.id}"


def _not_the_original(letter: DeadLetter) -> str:
    if letter.content == "batch":
        return "the bytes of a batch that nobody could read"
    return f"too large for dead-letter, a digest stands for it; its own topic may still have it at {letter.coordinate}"


def _partition(letter: DeadLetter, topic: str) -> int | None:
    """Where it lay, since records of one ticket keep the order of their partition."""
    at = letter.coordinate
    return at.partition if at is not None and at.topic == topic else None


def _timestamp(record: Record, letter: DeadLetter, settings: Settings, now_ms: int) -> int | None:
    """The original's time, unless the broker might refuse it for the future, or retention, which goes by it, might take
    the record before it is read."""
    time_ms = letter.time_ms(-1 if record.timestamp_ms is None else record.timestamp_ms)
    if not 0 <= time_ms <= now_ms:
        return None
    return time_ms if timedelta(milliseconds=now_ms - time_ms) < settings.tickets_retention / 2 else None
