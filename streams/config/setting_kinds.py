"""Kinds of values that settings have, how they are written, and the error that names a setting."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import (
    BeforeValidator,
)


class SettingsError(Exception):
    """A setting is unknown, malformed or contradicts another. Nothing was started; the message says what to do."""

    def __init__(self, setting: str, what: str, remedy: str) -> None:
        super().__init__(f"{setting}: {what}; {remedy}")
        self.setting, self.what, self.remedy = setting, what, remedy


Role = Literal["decide", "propose", "effects"]


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
