"""Dead letters as what they are: which record could not be read, and why; and which of them a person asks for.

Relies on: our headers, which no producer can forge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ticketgate.codecs.records import headers as names
from ticketgate.codecs.records.headers import Header, header
from ticketgate.codecs.records.identity import Coordinate

# The code of a record that ended whoever decoded it (passing.py).
ENDS_WORKER = "ends_worker"


class HasHeaders(Protocol):
    """A record, by its headers alone."""

    @property
    def headers(self) -> Sequence[Header]: ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What our headers say of a dead letter; what they do not say is None or empty.

    content: empty where the value is the original's, else `digest` or `batch` (records.py). original_ms: the original's
    time in ms since 1970, negative where it had none; None in letters of versions that kept it as the letter's own.
    """

    coordinate: Coordinate | None
    stage: str
    code: str
    reason: str
    content: str
    original_ms: int | None = None

    def time_ms(self, own_ms: int) -> int:
        """The original's time, where `own_ms` is the letter's."""
        return own_ms if self.original_ms is None else self.original_ms


def read_dead_letter(record: HasHeaders) -> DeadLetter:
    """What a record's headers say; empty of one that no worker wrote."""

    def text(name: str) -> str:
        return (header(record.headers, name) or b"").decode(errors="replace")

    try:
        coordinate = Coordinate.parse(text(names.COORDINATE))
    except ValueError:
        coordinate = None
    time = text(names.ORIGINAL_TIMESTAMP)
    return DeadLetter(
        coordinate=coordinate,
        stage=text(names.ERROR_STAGE),
        code=text(names.ERROR_CODE),
        reason=text(names.ERROR_REASON),
        content=text(names.CONTENT),
        original_ms=int(time) if re.fullmatch(r"-?[0-9]{1,19}", time, re.ASCII) else None,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Coordinates of one partition: all of them, or those in `offsets`."""

    topic: str
    partition: int
    offsets: range | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        """`TOPIC:PARTITION`, `TOPIC:PARTITION:OFFSET` or `TOPIC:PARTITION:FIRST-LAST`. Raises ValueError."""
        match = re.fullmatch(
            r"([A-Za-z0-9._-]{1,249}):([0-9]{1,9})(?::([0-9]{1,18})(?:-([0-9]{1,18}))?)?", text, re.ASCII
        )
        if match is None:
            raise ValueError(f"{text!r} is not TOPIC:PARTITION, TOPIC:PARTITION:OFFSET or …:FIRST-LAST")
        topic, partition, first, last = match.groups()
        offsets = None if first is None else range(int(first), int(last or first) + 1)
        return cls(topic, int(partition), offsets)

    def holds(self, coordinate: Coordinate) -> bool:
        """Whether it lies in here."""
        is_there = (coordinate.topic, coordinate.partition) == (self.topic, self.partition)
        return is_there and (self.offsets is None or coordinate.offset in self.offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which dead letters: each condition that is given must hold. Times are the original record's, in ms since 1970,
    `until_ms` not included; one without a time is in no span."""

    stage: str | None = None
    codes: frozenset[str] = frozenset()
    places: tuple[Place, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_everything(self) -> bool:
        """Whether no condition is given."""
        return self == Wanted()

    def holds(self, letter: DeadLetter, timestamp_ms: int) -> bool:
        """Whether it is one of them."""
        coordinate = letter.coordinate
        return (
            (self.stage is None or letter.stage == self.stage)
            and (not self.codes or letter.code in self.codes)
            and (
                not self.places or (coordinate is not None and any(p.holds(coordinate) for p in self.places))
            )
            and (self.since_ms is None or timestamp_ms >= self.since_ms)
            and (self.until_ms is None or 0 <= timestamp_ms < self.until_ms)
        )
