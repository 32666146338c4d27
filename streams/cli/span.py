"""Which part of a topic to read: what `--from` and `--until` may say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import click
from ticketgate.codecs.times import parse_rfc3339


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

_OFFSETS = re.compile(r"[0-9]{1,9}:[0-9]{1,18}(?:,[0-9]{1,9}:[0-9]{1,18})*")


def parse_from(_context: click.Context, _parameter: click.Parameter, text: str) -> From:
    """A click callback. Raises click.BadParameter."""
    if text == "beginning":
        return Beginning()
    if text == "end":
        return End()
    if _OFFSETS.fullmatch(text):
        pairs = [pair.split(":") for pair in text.split(",")]
        by_partition = {int(partition): int(offset) for partition, offset in pairs}
        if len(by_partition) < len(pairs):
            raise click.BadParameter(f"{text!r} names a partition twice")
        return Offsets(by_partition)
    return _moment(text, "beginning, end, PARTITION:OFFSET[,…] or a time such as 2026-11-29T18:00:00Z")


def parse_until(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Until | None:
    """A click callback; None if it was not given. Raises click.BadParameter."""
    if text is None:
        return None
    if text == "end":
        return End()
    if re.fullmatch("[0-9]{1,18}", text):
        return Count(int(text))
    return _moment(text, "end, a number of records or a time such as 2026-11-29T18:00:00Z")


def _moment(text: str, forms: str) -> Moment:
    try:
        return Moment(parse_rfc3339(text))
    except ValueError as err:
        raise click.BadParameter(f"{text!r} must be {forms}") from err
