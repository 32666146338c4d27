"""Which part of a topic is read: where it begins, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Beginning:
    """Each partition's first record."""


@dataclass(frozen=True, slots=True)
class End:
    """Each partition's end, as it is when the reading starts."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Each partition's first record that is not older."""

    at: datetime

    @property
    def milliseconds(self) -> int:
        """Since 1970, as Kafka counts."""
        return round(self.at.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class Offsets:
    """An offset for each partition named; the others are not read."""

    by_partition: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Count:
    """So many records, as they come."""

    records: int


From: TypeAlias = Beginning | End | Moment | Offsets


Until: TypeAlias = End | Moment | Count
