"""Kinds of values that settings have, how they are written, and the error that names a setting."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator
from ticketgate.streams.config.kafka_settings import Key

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class SettingsError(Exception):
    """A setting is unknown, malformed or contradicts another. Nothing was started; the message says what to do."""

    def __init__(self, setting: str, what: str, remedy: str) -> None:
        super().__init__(f"{setting}: {what}; {remedy}")
        self.setting, self.what, self.remedy = setting, what, remedy


def parse_duration(value: object) -> object:
    """`"90s"`, `"14d"`, `"250ms"` or a number of seconds."""
    if isinstance(value, str):
        number = value.rstrip("dhms")
        unit = value[len(number) :] or "s"
        if unit in _UNITS:
            try:
                return timedelta(seconds=float(number) * _UNITS[unit])
            except ValueError:
                pass
        raise ValueError("must be a duration such as 500ms, 30s, 10m, 12h or 14d")
    return value


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]


def _keys(value: object) -> object:
    """`"one,two"`, or in a file an array."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, (list, tuple)) and not all(
        isinstance(key, Key) or (isinstance(key, str) and key.strip()) for key in value
    ):
        # An empty variable must not open a port that its owner believes is closed.
        raise ValueError("names an empty key")
    if not value:
        raise ValueError("names no key")
    return (
        tuple(key.strip() if isinstance(key, str) else key for key in value)
        if isinstance(value, (list, tuple))
        else value
    )


Keys = Annotated[tuple[Key, ...], BeforeValidator(_keys)]


def _names(value: object) -> object:
    """`"one,two"`, or in a file an array; none of them empty."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        stripped = tuple(each.strip() for each in value)
        if not all(stripped):
            raise ValueError("has an empty name")
        return stripped
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


def _aliases(value: object) -> object:
    """`"NAME=FOLDER,…"`, or in a file an array of such texts; each name once."""
    if isinstance(value, str):
        value = [each.strip() for each in value.split(",") if each.strip()]
    if not isinstance(value, (list, tuple)):
        return value
    names: list[str] = []
    for each in value:
        name, sign, folder = each.partition("=") if isinstance(each, str) else ("", "", "")
        if not (name.strip() and sign and folder.strip()):
            raise ValueError("has an alias that is no NAME=FOLDER")
        names.append(name.strip())
    if len(set(names)) < len(names):
        raise ValueError("names an alias twice")
    return tuple(f"{name}={each.partition('=')[2].strip()}" for name, each in zip(names, value, strict=True))


# Names that a request may give for a model, and the folder of each.
Aliases = Annotated[tuple[str, ...], BeforeValidator(_aliases)]


Role = Literal["decide", "propose", "effects", "settle"]


def _roles(value: object) -> object:
    """`"decide,effects"`, or in a file an array; each once, in one order."""
    if isinstance(value, str):
        value = [each.strip() for each in value.split(",")]
    if not isinstance(value, (list, tuple)):
        return value
    known = get_args(Role)
    for each in value:
        if each not in known:
            raise ValueError(f"has no role {each!r}; there are {', '.join(known)}")
    if not value:
        raise ValueError("names no role")
    return tuple(role for role in known if role in value)


Roles = Annotated[tuple[Role, ...], BeforeValidator(_roles)]


def _processes(value: object) -> object:
    """`"auto"`, or a number of processes."""
    if isinstance(value, str) and value.strip() == AUTO:
        return AUTO
    try:
        number = int(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else 0
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_PROCESSES:
        raise ValueError(f"must be auto, or a number from 1 to {MOST_PROCESSES}")
    return number


AUTO: Literal["auto"] = "auto"
# More than any machine has cores; a worker takes 150 MB and more.
MOST_PROCESSES = 512
Processes = Annotated[int | Literal["auto"], BeforeValidator(_processes)]


def show_duration(value: timedelta) -> str:
    """`14d`, `90s`, `500ms`: the largest unit that divides it."""
    milliseconds = round(value.total_seconds() * 1000)
    for unit in ("d", "h", "m", "s"):
        size = round(_UNITS[unit] * 1000)
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
