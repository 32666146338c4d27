"""Step 3 of the protocol: a batch of Kafka records to documents with identities, and to what cannot be read as one.

A document is a ticket, a proposal or a settlement; its reader says which. Promise: every record of the batch is in
exactly one of the three parts. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from aiokafka import ConsumerRecord
from ticketgate.codecs.records.headers import Header, escape_name, has_readable_name
from ticketgate.codecs.records.identity import (
    Coordinate,
    Fingerprint,
    IdempotencyKey,
    fingerprint,
    proposal_fingerprint,
    proposal_key,
    settlement_key,
    ticket_key,
)
from ticketgate.codecs.records.proposal import Proposal, decode_proposal
from ticketgate.codecs.records.settlement import Settlement, decode_settlement, settlement_fingerprint
from ticketgate.codecs.records.ticket import Ticket, decode_ticket
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.malformed import Malformed, quote
from ticketgate.codecs.verdict import Stage
from ticketgate.store.claims import Claim

D = TypeVar("D")

# The code of a dead letter that could be read, or that nobody knows to be unreadable, and does not pass.
SET_ASIDE = "set_aside"


@dataclass(frozen=True, slots=True)
class Identified(Generic[D]):
    """A document with the key that it wants and what it says."""

    document: D
    key: IdempotencyKey
    fingerprint: Fingerprint


# Total: a record's value to a document, or why it is none.
Reader = Callable[[bytes], Identified[D] | Malformed]


@dataclass(frozen=True, slots=True)
class Arrival(Generic[D]):
    """A document that was read, and the claim that its record makes on its key."""

    document: D
    claim: Claim
    headers: tuple[Header, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is no document, as it came, and why."""

    coordinate: Coordinate
    key: bytes | None
    value: bytes
    headers: tuple[Header, ...]
    timestamp_ms: int
    malformed: Malformed


@dataclass(frozen=True, slots=True)
class Intake(Generic[D]):
    """A batch taken apart. `next_offset` is one past the last record's."""

    next_offset: int
    arrivals: tuple[Arrival[D], ...]
    unreadable: tuple[Unreadable, ...]
    tombstones: int


def ticket_reader(*, namespace: str, max_bytes: int) -> Reader[Ticket]:
    """Reads the records of `tickets`."""

    def read(value: bytes) -> Identified[Ticket] | Malformed:
        ticket = decode_ticket(value, max_bytes=max_bytes)
        if isinstance(ticket, Malformed):
            return ticket
        return Identified(ticket, ticket_key(namespace, ticket), fingerprint(ticket))

    return read


def proposal_reader(*, namespace: str, max_bytes: int) -> Reader[Proposal]:
    """Reads the records of `proposals`."""

    def read(value: bytes) -> Identified[Proposal] | Malformed:
        proposal = decode_proposal(value, max_bytes=max_bytes)
        if isinstance(proposal, Malformed):
            return proposal
        key = proposal_key(namespace, proposal.tenant, proposal.case_id, proposal.attempt)
        return Identified(proposal, key, proposal_fingerprint(proposal))

    return read


def settlement_reader(*, max_bytes: int) -> Reader[Settlement]:
    """Reads the records of `settlements`. What a settlement is believed of its ticket's key, its taker looks at."""

    def read(value: bytes) -> Identified[Settlement] | Malformed:
        settlement = decode_settlement(value, max_bytes=max_bytes)
        if isinstance(settlement, Malformed):
            return settlement
        return Identified(settlement, settlement_key(settlement.key), settlement_fingerprint(settlement))

    return read


def take_in(
    records: Sequence[ConsumerRecord], read: Reader[D], *, aside: Mapping[int, str] | None = None
) -> Intake[D]:
    """Read a batch, which is not empty, of one partition. What is to be set `aside`, by offset and for what reason, is
    among the unreadable where reading it raises."""
    arrivals: list[Arrival[D]] = []
    unreadable: list[Unreadable] = []
    tombstones = 0
    for record in records:
        if record.value is None:
            tombstones += 1
            continue
        coordinate = Coordinate(record.topic, record.partition, record.offset)
        headers = tuple(record.headers)
        reader = reading_aside(read, aside.get(record.offset)) if aside else read
        found = _check_headers(headers) or reader(record.value)
        if isinstance(found, Malformed):
            unreadable.append(
                Unreadable(coordinate, record.key, record.value, headers, record.timestamp, malformed=found)
            )
            continue
        claim = Claim(found.key, coordinate, found.fingerprint)
        arrivals.append(Arrival(found.document, claim, headers))
    return Intake(records[-1].offset + 1, tuple(arrivals), tuple(unreadable), tombstones)


def reading_aside(read: Reader[D], reason: str | None) -> Reader[D]:
    """The reader of a record that is set aside for `reason`: what it raises is told of as unreadable."""

    def guarded(value: bytes) -> Identified[D] | Malformed:
        try:
            return read(value)
        except Exception as err:  # noqa: BLE001 - the record is set aside for it
            return set_aside(f"{reason}; {type(err).__name__} while it was read")

    return read if reason is None else guarded


def set_aside(reason: str) -> Malformed:
    """What is said in dead-letter of a record that is set aside."""
    return Malformed(Stage.PARSE, SET_ASIDE, reason)


def _check_headers(headers: Sequence[Header]) -> Malformed | None:
    """A header whose name is not UTF-8 can neither be passed on nor left out unseen."""
    if not headers:
        return None
    unreadable = [name for name, value in headers if not has_readable_name((name, value))]
    if not unreadable:
        return None
    shown = quote(escape_name(unreadable[0]))
    more = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
    return Malformed(Stage.PARSE, "header_not_utf8", f"the name of header {shown}{more} is not UTF-8")
