"""How each record in review stands, by the topics alone: it waits, is settled, expired or replaced.

    settled    a settlement of it took effect: accepted, rejected or returned
    replaced   its ticket was decided anew since, and lies in review again
    expired    it waits, and its ticket's claim is over: it can be settled no more
    waiting    otherwise; a collision, a case or a receipt is looked into and not settled, so it waits until it is gone

Promise: no view, no Redis and no clock but the one given, so that it tells where a view is wrong. It keeps some 500
bytes in memory for each record in review.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ticketgate.codecs.values.times import from_epoch_ms, rfc3339
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.reading.salvage import Gap
from ticketgate.streams.kafka.reading.scanning import Progress, open_scanner, read_all
from ticketgate.streams.operations.review.feeding import claim_ttl_ms, rows_of
from ticketgate.streams.operations.review.rows import EFFECTIVE, Kind, Reviewed, Sent, State, Told

# A report for a person names some to begin with.
MOST_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One record in review. settlement: what settled it. expires_ms: until when a decision can be settled."""

    place: str
    key: str
    ticket_id: str
    kind: Kind
    state: State
    at_ms: int
    expires_ms: int | None
    settlement: str | None = None

    def to_json(self) -> dict[str, object]:
        """As `--json` prints it."""
        return {
            "review": self.place,
            "key": self.key,
            "ticket_id": self.ticket_id,
            "kind": str(self.kind),
            "state": str(self.state),
            "at": rfc3339(from_epoch_ms(self.at_ms)),
            "until": None if self.expires_ms is None else rfc3339(from_epoch_ms(self.expires_ms)),
            "settlement": self.settlement,
        }


@dataclass(slots=True)
class ReviewBooks:
    """Filled by `add`, in each partition's order. settled_twice: records in review that two settlements took effect on,
    named by their places, the first few. settlements_of_past: took effect on records that are gone from review."""

    claim_ttl_ms: int
    settled_twice: int = 0
    settled_twice_first: list[str] = field(default_factory=list)
    _waiting: dict[str, Reviewed] = field(default_factory=dict)
    _effective: dict[str, tuple[str, str, State]] = field(default_factory=dict)

    def add(self, rows: Iterable[Reviewed | Sent | Told]) -> None:
        """Take rows in; what was only sent changes nothing."""
        for row in rows:
            if isinstance(row, Reviewed):
                # Its text is of no use here, and large.
                self._waiting.setdefault(row.place, replace(row, text="", reasons=(), rules=(), labels=()))
            elif isinstance(row, Told) and (state := EFFECTIVE.get(row.outcome)) is not None:
                self._settle(row, state)

    def _settle(self, row: Told, state: State) -> None:
        before = self._effective.get(row.review)
        if before is not None and before[1] != row.id:
            self.settled_twice += 1
            if len(self.settled_twice_first) < MOST_NAMED:
                self.settled_twice_first.append(row.review)
        self._effective.setdefault(row.review, (row.key, row.id, state))

    @property
    def settlements_of_past(self) -> int:
        """How many took effect on records that are gone from review."""
        return sum(place not in self._waiting for place in self._effective)

    def standings(self, *, now_ms: int) -> Iterator[Standing]:
        """Each record, the oldest first."""
        rows = sorted(self._waiting.values(), key=lambda row: row.at_ms)
        last = {row.key: row.place for row in rows if row.kind is Kind.DECISION}
        for row in rows:
            key, settlement, effect = self._effective.get(row.place, ("", None, State.WAITING))
            is_decision = row.kind is Kind.DECISION
            expires_ms = row.at_ms + self.claim_ttl_ms if is_decision else None
            state = State.WAITING
            if key == row.key:
                state = effect
            elif is_decision and last[row.key] != row.place:
                state = State.REPLACED
            elif expires_ms is not None and expires_ms <= now_ms:
                state = State.EXPIRED
            yield Standing(
                place=row.place,
                key=row.key,
                ticket_id=row.ticket_id,
                kind=row.kind,
                state=state,
                at_ms=row.at_ms,
                expires_ms=expires_ms,
                settlement=settlement if key == row.key else None,
            )


def count(standings: Iterable[Standing]) -> dict[str, int]:
    """How many of each state there are, of what can be settled; and how many records are `looked_into`."""
    found = Counter(str(each.state) if each.kind is Kind.DECISION else "looked_into" for each in standings)
    return {name: found[name] for name in (*map(str, State), "looked_into")}


async def review_books(settings: Settings, *, progress: Progress) -> ReviewBooks:
    """All of `review`, and then of `settled`, as they are committed. Raises `Unreachable`, and `ConditionFailed` for a
    topic that is not there."""
    books = ReviewBooks(claim_ttl_ms(settings))
    gaps: list[Gap] = []
    async with open_scanner(settings) as scanner:
        for topic in (settings.topic_review, settings.topic_settled):
            extents = await scanner.extents(await scanner.partitions(topic))
            async for records in read_all(scanner, extents, what=topic, progress=progress, unreadable=gaps):
                books.add(rows_of(records, settings))
    return books
