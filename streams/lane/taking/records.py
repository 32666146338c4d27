"""What a batch's outcomes look like on the wire: decisions and dead letters as records to send.

Promise: no record is larger than the limit, so that the broker takes it; what would be is sent without its text, to
`review` (or, where it has no identity, to `dead-letter` with a digest). See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from ticketgate.agents.deciding.decide import Decision
from ticketgate.codecs.records.decision import DecisionRecord, Effect
from ticketgate.codecs.records.headers import (
    CONTENT,
    Header,
    dead_letter_headers,
    decision_headers,
    foreign,
    unreadable_headers,
)
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey, effect_key
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import JsonValue, encode
from ticketgate.codecs.verdict import Status, Verdict
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.lane.taking.intake import Arrival, Unreadable
from ticketgate.streams.lane.transaction import Outgoing

# What Kafka adds to key, value and headers: lengths, time, offset and its share of the batch's head, at most.
OVERHEAD_BYTES = 200
# For each header, the lengths of its name and value.
HEADER_OVERHEAD_BYTES = 10

TOO_LARGE = (
    "the record would exceed the broker's limit, so it stands here without its text; see its coordinate"
)


@dataclass(frozen=True, slots=True)
class OutputTopics:
    """Where records go, by name."""

    dispatch: str
    review: str
    dead_letter: str
    repairs: str
    receipts: str
    settled: str


def output_topics(settings: Settings) -> OutputTopics:
    """By the settings."""
    return OutputTopics(
        dispatch=settings.topic_dispatch,
        review=settings.topic_review,
        dead_letter=settings.topic_dead_letter,
        repairs=settings.topic_repairs,
        receipts=settings.topic_receipts,
        settled=settings.topic_settled,
    )


@dataclass(frozen=True, slots=True)
class RecordWriter:
    """Writes records for `topics`, none above `max_bytes`; `dispatch_with_ticket` keeps the ticket in dispatch too."""

    topics: OutputTopics
    max_bytes: int
    dispatch_with_ticket: bool

    def decision(
        self, arrival: Arrival[Ticket], decision: Decision, *, key: IdempotencyKey, at: datetime
    ) -> Outgoing:
        """The decision on a ticket, under the key that was claimed for it."""
        is_accepted = decision.verdict.status is Status.ACCEPT
        record = self._record(
            arrival, decision, key, at, with_ticket=self.dispatch_with_ticket or not is_accepted
        )
        outgoing = Outgoing(
            topic=self.topics.dispatch if is_accepted else self.topics.review,
            key=arrival.document.id.encode(),
            value=record.encode(),
            headers=foreign(arrival.headers) + decision_headers(record),
        )
        return outgoing if size(outgoing) <= self.max_bytes else self._without_text(outgoing, record)

    def bare(
        self, arrival: Arrival[Ticket], decision: Decision, *, key: IdempotencyKey, at: datetime
    ) -> Outgoing:
        """A decision for review with nothing of the ticket but its names."""
        record = self._record(arrival, decision, key, at, with_ticket=False)
        return Outgoing(
            topic=self.topics.review,
            key=arrival.document.id.encode(),
            value=record.encode(),
            headers=decision_headers(record),
        )

    def _record(
        self,
        arrival: Arrival[Ticket],
        decision: Decision,
        key: IdempotencyKey,
        at: datetime,
        *,
        with_ticket: bool,
    ) -> DecisionRecord:
        return DecisionRecord(
            ticket_id=arrival.document.id,
            tenant=arrival.document.tenant,
            verdict=decision.verdict,
            selected=decision.selected,
            values=decision.values,
            violations=decision.violations,
            probabilities=decision.probabilities,
            answers=decision.answers,
            truncated=decision.truncated,
            policy=decision.policy,
            model=decision.model,
            effects=tuple(
                Effect(effect.tool, effect.arguments, effect_key(key, effect.place))
                for effect in decision.effects
            ),
            idempotency_key=key,
            fingerprint=arrival.claim.fingerprint,
            coordinate=arrival.claim.coordinate,
            decided_at=at,
            ticket=arrival.document.to_json() if with_ticket else None,
        )

    def dead_letter(self, unreadable: Unreadable, *, is_bare: bool = False) -> Outgoing:
        """The original bytes, key and headers, its time as a header, and our reason. `is_bare`: digests instead."""
        ours = dead_letter_headers(
            unreadable.malformed, unreadable.coordinate, timestamp_ms=unreadable.timestamp_ms
        )
        if is_bare:
            digests = {"value": _digest(unreadable.value)}
            if unreadable.key is not None:
                digests["key"] = _digest(unreadable.key)
            headers = (*ours, (CONTENT, b"digest"))
            return Outgoing(self.topics.dead_letter, key=None, value=encode(digests), headers=headers)
        return self._fitting(
            Outgoing(
                topic=self.topics.dead_letter,
                key=unreadable.key,
                value=unreadable.value,
                headers=foreign(unreadable.headers) + ours + unreadable_headers(unreadable.headers),
            ),
            ours,
        )

    def dead_letters(self, unreadable: Iterable[Unreadable], *, bare: Container[int]) -> list[Outgoing]:
        """Each as `dead_letter`, its headers as they came. bare: the offsets of those that are told by digests."""
        return [self.dead_letter(each, is_bare=each.coordinate.offset in bare) for each in unreadable]

    def given_up(self, coordinate: Coordinate, malformed: Malformed, *, batch: bytes) -> Outgoing:
        """What is left of records that nobody can read: the bytes of their batch, from the coordinate of its first."""
        ours = (*dead_letter_headers(malformed, coordinate), (CONTENT, b"batch"))
        return self._fitting(Outgoing(self.topics.dead_letter, key=None, value=batch, headers=ours), ours)

    def _fitting(self, outgoing: Outgoing, ours: tuple[Header, ...]) -> Outgoing:
        """With digests in the place of the value and, if that is not enough, of the key and the producer's headers."""
        if size(outgoing) <= self.max_bytes:
            return outgoing
        marked = (CONTENT, b"digest")
        digests = {"value": _digest(outgoing.value)}
        shortened = replace(outgoing, value=encode(digests), headers=(*outgoing.headers, marked))
        if size(shortened) <= self.max_bytes:
            return shortened
        if outgoing.key is not None:
            digests["key"] = _digest(outgoing.key)
        return replace(shortened, key=None, value=encode(digests), headers=(*ours, marked))

    def _without_text(self, outgoing: Outgoing, record: DecisionRecord) -> Outgoing:
        """To review without the text, and if that is not enough without the producer's headers and the answers."""
        verdict = record.verdict
        moved = Verdict(
            Status.REVIEW, verdict.stage, (*verdict.reasons, TOO_LARGE), "a person looks up the ticket"
        )
        bare = replace(record, ticket=None, effects=(), verdict=moved)
        shortened = replace(outgoing, topic=self.topics.review, value=bare.encode())
        if size(shortened) <= self.max_bytes:
            return shortened
        bare = replace(
            bare, answers={}, values={}, probabilities={}, verdict=replace(moved, reasons=(TOO_LARGE,))
        )
        return replace(shortened, value=bare.encode(), headers=decision_headers(record))


def _digest(data: bytes) -> JsonValue:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def size(record: Outgoing) -> int:
    """An upper bound in bytes of what a record takes in a Kafka batch, uncompressed."""
    headers = sum(
        len(name.encode()) + len(value or b"") + HEADER_OVERHEAD_BYTES for name, value in record.headers
    )
    return len(record.key or b"") + len(record.value) + headers + OVERHEAD_BYTES
