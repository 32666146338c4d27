"""Requests: what a proposed call is to serve, as the application knows it.

Promise: what comes out has exactly the fields below, each value bound once; every wrong field is named at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, NotRequired

from pydantic import FailFast, Field, TypeAdapter, ValidationError, with_config
from ticketgate.codecs.values.malformed import Malformed, first_few, quote, wrong_kind
from ticketgate.codecs.values.shape import (
    FORBID_UNKNOWN,
    IGNORE_UNKNOWN,
    few_unknown,
    without_nulls,
    wrong_fields,
)
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage
from typing_extensions import TypedDict

__all__ = [
    "Request",
    "RequestDocument",
    "Scalar",
    "WrittenRequestDocument",
    "read_request",
    "read_written_request",
]

# What a request binds a field to. Money and dates are text: a binary fraction is no amount.
Scalar = str | int | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for, as the application knows it; no model wrote any of it.

    operation: what is requested, as the catalogue's tools say that they serve it. actor_id, roles: who asks, as
    authenticated. version: counts up when the requester changes their mind. values: the facts by field. conditions:
    what must hold besides, by field. control: what the application binds, such as `idempotency_key`. channel: where it
    was asked, such as app or phone; written only if it is known.
    """

    operation: str
    actor_id: str
    roles: tuple[str, ...] = ()
    purpose: str = ""
    phase: str = ""
    version: int = 1
    values: Mapping[str, Scalar] = field(default_factory=dict)
    conditions: Mapping[str, Scalar] = field(default_factory=dict)
    control: Mapping[str, Scalar] = field(default_factory=dict)
    channel: str = ""

    def value(self, name: str) -> Scalar | None:
        """What the request binds a field to, whichever of the three tables it stands in; None if nothing."""
        for table in (self.values, self.conditions, self.control):
            if name in table:
                return table[name]
        return None

    def to_json(self) -> dict[str, JsonValue]:
        """The request as a JSON object, every field written but a channel that is not known."""
        record: dict[str, JsonValue] = {
            "operation": self.operation,
            "actor_id": self.actor_id,
            "roles": list(self.roles),
            "purpose": self.purpose,
            "phase": self.phase,
            "version": self.version,
            "values": dict(self.values),
            "conditions": dict(self.conditions),
            "control": dict(self.control),
        }
        if self.channel:
            record["channel"] = self.channel
        return record


# FailFast: what is said of each wrong entry takes a hundred times as much as the entry.
_Table = Annotated[dict[str, str | int | bool], FailFast()]
_Text = Annotated[str, Field(min_length=1, max_length=256)]


class _RequestFields(TypedDict):
    operation: _Text
    actor_id: _Text
    roles: NotRequired[Annotated[list[str], FailFast()]]
    purpose: NotRequired[str]
    phase: NotRequired[str]
    version: NotRequired[Annotated[int, Field(ge=1)]]
    values: NotRequired[_Table]
    conditions: NotRequired[_Table]
    control: NotRequired[_Table]
    channel: NotRequired[_Text]


@with_config(FORBID_UNKNOWN)
class RequestDocument(_RequestFields):
    """A request as users send it."""


@with_config(IGNORE_UNKNOWN)
class WrittenRequestDocument(_RequestFields):
    """A request as our records carry it on."""


_SCALARS = "an object of texts, whole numbers, true or false"
_HINTS = {
    "operation": "text of 1 to 256 characters",
    "actor_id": "text of 1 to 256 characters",
    "roles": "an array of texts",
    "purpose": "text",
    "phase": "text",
    "version": "a whole number from 1",
    "values": _SCALARS,
    "conditions": _SCALARS,
    "control": _SCALARS,
    "channel": "text of 1 to 256 characters",
}


_OPTIONAL = _HINTS.keys() - {"operation", "actor_id"}
# A form binds nothing to a field that nobody filled in.
_OPTIONAL_INSIDE: dict[str, None] = {"values": None, "conditions": None, "control": None}


@cache
def _check() -> TypeAdapter[RequestDocument]:
    """Built at first use, as `codecs.ticket` says."""
    return TypeAdapter(RequestDocument)


def read_request(value: JsonValue) -> Request | Malformed:
    """The request that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a request is a JSON object, not {wrong_kind(value)}"
        )
    value = without_nulls(value, _OPTIONAL, inside=_OPTIONAL_INSIDE)
    try:
        checked = _check().validate_python(few_unknown(value, _HINTS))
    except ValidationError as err:
        return wrong_fields(err, value, _HINTS, unknown="not one of a request's")
    values, conditions = checked.get("values", {}), checked.get("conditions", {})
    control = checked.get("control", {})
    twice = sorted(
        values.keys() & conditions.keys()
        | values.keys() & control.keys()
        | conditions.keys() & control.keys()
    )
    if twice:
        return Malformed(
            Stage.SCHEMA,
            "contradiction",
            f"bound in more than one of values, conditions and control: {', '.join(first_few(map(quote, twice)))}",
        )
    return read_written_request(checked)


def read_written_request(checked: _RequestFields) -> Request:
    """The request that a checked document is."""
    return Request(
        operation=checked["operation"],
        actor_id=checked["actor_id"],
        roles=tuple(checked.get("roles", ())),
        purpose=checked.get("purpose", ""),
        phase=checked.get("phase", ""),
        version=checked.get("version", 1),
        values=checked.get("values", {}),
        conditions=checked.get("conditions", {}),
        control=checked.get("control", {}),
        channel=checked.get("channel", ""),
    )
