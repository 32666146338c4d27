"""Moments as the wire writes them: RFC 3339. Nothing here reads a clock; moments come in from outside."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from ticketgate.codecs.values.malformed import quote

__all__ = ["from_epoch_ms", "parse_rfc3339", "read_date", "require_rfc3339", "rfc3339", "to_milliseconds"]

_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]((?:[01][0-9]|2[0-3]):[0-5][0-9]):([0-5][0-9]|60)"
    r"(?:\.([0-9]++))?([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
# date.fromisoformat would take 20260904 and 2026-W36-5 as well.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A record's timestamp is a 64-bit number that its producer chose; a datetime ends with the year 9999.
_FIRST_MS = -62_135_596_800_000
_LAST_MS = 253_402_300_799_999


def to_milliseconds(moment: datetime) -> datetime:
    """`moment` in UTC with its microseconds cut to milliseconds. Raises ValueError without a time zone."""
    if moment.tzinfo is UTC and moment.microsecond % 1000 == 0:
        return moment  # as the caller of a whole batch gives it for each record
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} names no time zone; give an aware datetime")
    utc = moment.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def rfc3339(moment: datetime) -> str:
    """`moment` as `2026-11-29T18:00:00.000Z`: milliseconds, UTC. Raises ValueError without a time zone."""
    return _written(to_milliseconds(moment))


# A batch writes one moment into each of its records. In UTC, for in a zone whose clocks go back Python takes both hours
# for equal.
@lru_cache(maxsize=64)
def _written(moment: datetime) -> str:
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def from_epoch_ms(milliseconds: int) -> datetime:
    """The moment of a Kafka record's timestamp: milliseconds since 1970, exactly.

    What lies outside the years 1 to 9999 gives the nearest moment in them: no timestamp may stop a lane.
    """
    return _EPOCH + timedelta(milliseconds=min(max(milliseconds, _FIRST_MS), _LAST_MS))


def parse_rfc3339(text: str) -> datetime:
    """The moment that `text` writes, in UTC. Raises ValueError if it is no RFC 3339 date-time with an offset.

    `T` must stand between date and time. Years 0001 to 9999. A leap second (:60) is read as the second before.
    Digits beyond microseconds are cut.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{quote(text)} is no RFC 3339 time such as 2026-11-29T18:00:00Z")
    day, hour_minute, second, fraction, offset = match.groups()
    second = "59" if second == "60" else second
    fraction = (fraction or "")[:6].ljust(6, "0")
    try:
        moment = datetime.fromisoformat(f"{day}T{hour_minute}:{second}.{fraction}{offset.upper()}")
        return moment.astimezone(UTC)
    except OverflowError as err:
        raise ValueError(f"{quote(text)} lies outside the years 1 to 9999") from err


def read_date(text: str) -> date:
    """The day that `text` writes as `2026-09-04`. Raises ValueError for any other spelling."""
    try:
        if _DATE.fullmatch(text) is None:
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not a date such as 2026-09-04: {quote(text)}") from None


def require_rfc3339(text: str) -> str:
    """`text` itself, for a field that keeps it as it came. Raises ValueError as `parse_rfc3339` does."""
    parse_rfc3339(text)
    return text
