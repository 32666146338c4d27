"""Moments and ages as people read them.

Promise: pure; the same moment reads the same on every machine, in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ticketgate.streams.config.setting_kinds import parse_duration

# Ten years.
LONGEST_MS = 10 * 366 * 86_400_000


def moment(at_ms: int) -> str:
    """A moment as people read it: UTC, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def age(ms: int) -> str:
    """`3d`, `5h`, `12m`: the largest unit."""
    seconds = max(0, ms // 1000)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def read_age(text: str) -> int | None:
    """An age such as `30m`, `12h` or `2d` in ms; None for what is none, or longer than anything is kept."""
    try:
        found = parse_duration(text)
        ms = round(found.total_seconds() * 1000) if isinstance(found, timedelta) else -1
    except (ValueError, OverflowError):
        return None
    return ms if 0 <= ms <= LONGEST_MS else None
