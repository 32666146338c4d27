"""What the outputs tell of the inputs: by idempotency key, and by coordinate for what has none.

Promise: memory is bounded per record, some 350 bytes, whatever a record holds: digests are kept, never bodies.
Relies on: our headers, which no producer can forge. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

from aiokafka import ConsumerRecord
from ticketgate.codecs.records import headers as names
from ticketgate.codecs.records.headers import header
from ticketgate.codecs.records.identity import (
    SETTLEMENT_SUFFIX,
    Coordinate,
    Fingerprint,
    IdempotencyKey,
    collision_key,
)
from ticketgate.store.claims import Claim
from ticketgate.streams.lane.taking.records import OutputTopics


class Fate(Enum):
    """What became of a ticket or proposal, as the outputs tell."""

    DISPATCHED = "dispatched"
    REVIEW = "review"
    REPAIRS = "repairs"
    SETTLED = "settled"
    """Of a settlement that rejected or returned its ticket."""
    NOT_TAKEN = "not_taken"
    """Of a settlement that took no effect, and was told why."""
    COLLISION = "collision"
    """In review as well, under its derived key."""
    REPLAYED = "replayed"
    """Its key's record was made from another input: it was suppressed."""
    NONE = "none"


def read_claim(record: ConsumerRecord) -> Claim | None:
    """The claim that an output with a verdict stands for, from its headers; None if it has none."""
    found = [header(record.headers, name) for name in (names.IDEMPOTENCY_KEY, names.FINGERPRINT)]
    coordinate = read_coordinate(record)
    key, fingerprint = (None if value is None else value.decode(errors="replace") for value in found)
    if key is None or fingerprint is None or coordinate is None:
        return None
    return Claim(IdempotencyKey(key), coordinate, Fingerprint(fingerprint))


def read_settles(record: ConsumerRecord) -> Claim | None:
    """The claim of the ticket that a record settled, None if it settled none."""
    value, claim = header(record.headers, names.SETTLES), read_claim(record)
    if value is None or claim is None:
        return None
    coordinate, _, fingerprint = value.decode(errors="replace").rpartition(":")
    try:
        at = Coordinate.parse(coordinate)
    except ValueError:
        return None
    key = IdempotencyKey(claim.key.removesuffix(SETTLEMENT_SUFFIX))
    return Claim(key, at, Fingerprint(fingerprint))


def read_coordinate(record: ConsumerRecord) -> Coordinate | None:
    """The input that an output was made from, or None if it does not say."""
    value = header(record.headers, names.COORDINATE)
    try:
        return None if value is None else Coordinate.parse(value.decode(errors="replace"))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Repeated:
    """A second output where there may be one. `key` is empty for a dead letter."""

    key: str
    coordinate: Coordinate
    first: Coordinate


@dataclass(slots=True)
class _Decided:
    """One output under a key; `earlier` is another one under the same key."""

    fingerprint: int
    partition: int
    offset: int
    timestamp_ms: int
    fate: Fate
    earlier: _Decided | None
    is_explained: bool = False


class Outcomes:
    """An index of the outputs that were made from one input, filled by `add`; those of others are only counted.

    `source`: the input's topic. `claim_ttl_ms`: an output that is younger by as much than another one under its key is
    no repetition, for the claim was over.
    """

    def __init__(
        self, topics: OutputTopics, *, source: str, claim_ttl_ms: int, named_repetitions: int
    ) -> None:
        self._dead_letter = topics.dead_letter
        self._settled = topics.settled
        self._fates = {
            topics.dispatch: Fate.DISPATCHED,
            topics.repairs: Fate.REPAIRS,
            topics.settled: Fate.SETTLED,
        }
        self._source = source
        self._claim_ttl_ms = claim_ttl_ms
        self._named_repetitions = named_repetitions
        self._by_key: dict[bytes, _Decided] = {}
        self._dead: set[tuple[int, int]] = set()
        self._told: set[tuple[int, int]] = set()
        self.outputs = 0
        self.duplicates = 0
        self.decided_anew = 0
        self.without_identity = 0
        self.of_others = 0
        self.repeated: list[Repeated] = []

    def add(self, record: ConsumerRecord) -> None:
        """Take one output in."""
        self.outputs += 1
        if record.topic == self._dead_letter:
            self._add_by_place(record, self._dead)
        else:
            self._add_decision(record)

    def fate(self, claim: Claim) -> Fate:
        """What became of the input that makes this claim."""
        decided = self._by_key.get(digest(claim.key))
        if own := _made_from(decided, claim.coordinate):
            return own.fate
        if (claim.coordinate.partition, claim.coordinate.offset) in self._told:
            return Fate.NOT_TAKEN
        if decided is None:
            return self._fate_as_collision(claim, otherwise=Fate.NONE)
        said = _short(claim.fingerprint)
        if _says(decided, said):
            return Fate.REPLAYED
        return self._fate_as_collision(claim, otherwise=Fate.NONE)

    def is_dead_lettered(self, coordinate: Coordinate) -> bool:
        """Whether `dead-letter` has a record made from this input."""
        return (coordinate.partition, coordinate.offset) in self._dead

    def unexplained(self, first: dict[int, int], end: dict[int, int]) -> tuple[int, int]:
        """Decisions that no call of `fate` met: how many were made from inputs before `first` of their partition,
        which are gone, and how many from offsets in between, where there is no such input."""
        gone = strange = 0
        for newest in self._by_key.values():
            decided: _Decided | None = newest
            while decided is not None:
                if not decided.is_explained:
                    gone += decided.offset < first.get(decided.partition, 0)
                    strange += (
                        first.get(decided.partition, 0) <= decided.offset < end.get(decided.partition, 0)
                    )
                decided = decided.earlier
        return gone, strange

    def _fate_as_collision(self, claim: Claim, *, otherwise: Fate) -> Fate:
        derived = self._by_key.get(digest(collision_key(claim.key, claim.fingerprint)))
        if derived is None:
            return otherwise
        return Fate.COLLISION if _made_from(derived, claim.coordinate) else Fate.REPLAYED

    def _add_decision(self, record: ConsumerRecord) -> None:
        claim = read_claim(record)
        if claim is None:
            self._add_told(record)
            return
        key, coordinate = digest(claim.key), claim.coordinate
        if coordinate.topic != self._source:
            self.of_others += 1
            return
        earlier = self._by_key.get(key)
        if earlier is not None:
            if _is_within(earlier, record.timestamp, self._claim_ttl_ms):
                before = Coordinate(self._source, earlier.partition, earlier.offset)
                self._repeat(Repeated(claim.key, coordinate, before))
            else:
                self.decided_anew += 1
        self._by_key[key] = _Decided(
            fingerprint=_short(claim.fingerprint),
            partition=coordinate.partition,
            offset=coordinate.offset,
            timestamp_ms=record.timestamp,
            fate=self._fates.get(record.topic, Fate.REVIEW),
            earlier=earlier,
        )

    def _add_told(self, record: ConsumerRecord) -> None:
        """What bears no claim: told of a settlement, or written by nobody of ours."""
        if record.topic == self._settled:
            self._add_by_place(record, self._told)
        else:
            self.without_identity += 1

    def _add_by_place(self, record: ConsumerRecord, known: set[tuple[int, int]]) -> None:
        """What bears no claim, by where the record lies that it tells of."""
        coordinate = read_coordinate(record)
        if coordinate is None:
            self.without_identity += 1
            return
        if coordinate.topic != self._source:
            self.of_others += 1
            return
        place = (coordinate.partition, coordinate.offset)
        if place in known:
            self._repeat(Repeated("", coordinate, coordinate))
        known.add(place)

    def _repeat(self, repeated: Repeated) -> None:
        self.duplicates += 1
        if len(self.repeated) < self._named_repetitions:
            self.repeated.append(repeated)


def _made_from(decided: _Decided | None, coordinate: Coordinate) -> _Decided | None:
    found = None
    while decided is not None:
        if (decided.partition, decided.offset) == (coordinate.partition, coordinate.offset):
            decided.is_explained = True
            found = decided
        decided = decided.earlier
    return found


def _is_within(decided: _Decided | None, timestamp_ms: int, span_ms: int) -> bool:
    while decided is not None:
        if abs(timestamp_ms - decided.timestamp_ms) < span_ms:
            return True
        decided = decided.earlier
    return False


def _says(decided: _Decided | None, said: int) -> bool:
    while decided is not None:
        if decided.fingerprint == said:
            return True
        decided = decided.earlier
    return False


def digest(key: str) -> bytes:
    """16 bytes that stand for a key in memory."""
    return hashlib.blake2b(key.encode(), digest_size=16).digest()


def _short(fingerprint: str) -> int:
    return int.from_bytes(hashlib.blake2b(fingerprint.encode(), digest_size=7).digest(), "big")
