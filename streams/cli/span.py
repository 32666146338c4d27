"""Which part of a topic to read: what `--from` and `--until` may say."""

from __future__ import annotations

import re

import click
from ticketgate.codecs.values.times import parse_rfc3339
from ticketgate.streams.kafka.reading.span import Beginning, Count, End, From, Moment, Offsets, Until

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
