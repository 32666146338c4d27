"""Durations as settings write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _duration(value: object) -> object:
    """`"90s"`, `"14d"`, `"250ms"` or a number of seconds."""
    if isinstance(value, str):
        number = value.rstrip("dhms")
        unit = value[len(number) :] or "s"
        if unit in UNITS:
            try:
                return timedelta(seconds=float(number) * UNITS[unit])
            except ValueError:
                pass
        raise ValueError("must be a duration such as 500ms, 30s, 10m, 12h or 14d")
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration)]


def show_duration(value: timedelta) -> str:
    """`14d`, `90s`, `500ms`: the largest unit that divides it."""
    milliseconds = round(value.total_seconds() * 1000)
    for unit in ("d", "h", "m", "s"):
        size = round(UNITS[unit] * 1000)
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
