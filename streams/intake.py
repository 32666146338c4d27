"""Step 3 of the protocol: a batch of Kafka records to tickets with identities, and to what cannot be read as one.

Promise: every record of the batch is in exactly one of the three parts. Source: DESIGN sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import ConsumerRecord
from ticketgate.codecs.headers import Header, has_readable_name
from ticketgate.codecs.identity import Coordinate, fingerprint, ticket_key
from ticketgate.codecs.malformed import Malformed, quote
from ticketgate.codecs.ticket import Ticket, decode_ticket
from ticketgate.codecs.verdict import Stage
from ticketgate.store.claims import Claim


@dataclass(frozen=True, slots=True)
class Arrival:
    """A ticket that was read, and the claim that its record makes on its key."""

    ticket: Ticket
    claim: Claim
    headers: tuple[Header, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is no ticket, as it came, and why."""

    coordinate: Coordinate
    key: bytes | None
    value: bytes
    headers: tuple[Header, ...]
    timestamp_ms: int
    malformed: Malformed


@dataclass(frozen=True, slots=True)
class Intake:
    """A batch taken apart. `next_offset` is one past the last record's."""

    next_offset: int
    arrivals: tuple[Arrival, ...]
    unreadable: tuple[Unreadable, ...]
    tombstones: int


def take_in(records: Sequence[ConsumerRecord], *, namespace: str, max_bytes: int) -> Intake:
    """Read a batch, which is not empty, of one partition."""
    arrivals: list[Arrival] = []
    unreadable: list[Unreadable] = []
    tombstones = 0
    for record in records:
        if record.value is None:
            tombstones += 1
            continue
        coordinate = Coordinate(record.topic, record.partition, record.offset)
        headers = tuple(record.headers)
        ticket = _check_headers(headers) or decode_ticket(record.value, max_bytes=max_bytes)
        if isinstance(ticket, Malformed):
            unreadable.append(
                Unreadable(coordinate, record.key, record.value, headers, record.timestamp, malformed=ticket)
            )
            continue
        claim = Claim(ticket_key(namespace, ticket), coordinate, fingerprint(ticket))
        arrivals.append(Arrival(ticket, claim, headers))
    return Intake(records[-1].offset + 1, tuple(arrivals), tuple(unreadable), tombstones)


def _check_headers(headers: Sequence[Header]) -> Malformed | None:
    """A header whose name is not UTF-8 can neither be passed on nor left out unseen."""
    unreadable = [name for name, value in headers if not has_readable_name((name, value))]
    if not unreadable:
        return None
    shown = quote(unreadable[0].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
    more = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
    return Malformed(Stage.PARSE, "header_not_utf8", f"the name of header {shown}{more} is not UTF-8")
