"""Tickets: what users send, read strictly (`ticket/1`)."""

from __future__ import annotations

import unicodedata
from dataclasses import field
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    with_config,
)
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.malformed import Malformed, wrong_kind
from ticketgate.codecs.values.shape import few_unknown, without_nulls, wrong_fields
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, JsonValue, decode
from ticketgate.codecs.values.times import require_rfc3339
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage
from typing_extensions import TypedDict

__all__ = ["TICKET_SCHEMA", "Ticket", "TicketDocument", "decode_ticket", "is_empty_state", "read_ticket"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket whose shape has been checked; absent fields have their defaults.

    id: 1 to 256 characters, unique within a tenant. state: what the model reads, text, object or array.
    tenant: a label that the record gives itself, not a security boundary. idempotency_key: 8 to 256 characters,
    used for identity in place of the id. received_at: RFC 3339, as it came. attributes: facts for policies.
    """

    id: str
    state: JsonValue
    tenant: str = ""
    idempotency_key: str | None = None
    received_at: str | None = None
    attributes: dict[str, JsonValue] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The ticket as it may stand in a record, absent fields left out: `read_ticket` gives it back."""
        record: dict[str, JsonValue] = {"id": self.id, "state": self.state}
        if self.tenant:
            record["tenant"] = self.tenant
        if self.idempotency_key is not None:
            record["idempotency_key"] = self.idempotency_key
        if self.received_at is not None:
            record["received_at"] = self.received_at
        if self.attributes:
            record["attributes"] = self.attributes
        return record


@with_config(ConfigDict(extra="forbid", strict=True, title="ticket/1"))
class TicketDocument(TypedDict):
    """A ticket on the wire. A field that is not required may be left out or null, which says the same."""

    id: Annotated[str, Field(min_length=1, max_length=256, description="unique within a tenant")]
    state: Annotated[str | dict[str, Any] | list[Any], Field(description="what the model reads")]
    schema: NotRequired[Literal["ticket/1"]]
    tenant: NotRequired[Annotated[str, Field(description="a label, not a security boundary")]]
    idempotency_key: NotRequired[
        Annotated[str, Field(min_length=8, max_length=256, description="identity in place of the id")]
    ]
    received_at: NotRequired[
        Annotated[
            str,
            AfterValidator(require_rfc3339),
            WithJsonSchema({"type": "string", "format": "date-time", "description": "RFC 3339"}),
        ]
    ]
    attributes: NotRequired[Annotated[dict[str, Any], Field(description="what is yours goes in here")]]


@cache
def _check() -> TypeAdapter[TicketDocument]:
    """Built at first use: it takes tens of milliseconds, which no command should wait for at its start."""
    return TypeAdapter(TicketDocument)


_HINTS = {
    "id": "text of 1 to 256 characters",
    "state": "text, an object or an array",
    "schema": '"ticket/1" where it stands',
    "tenant": "text",
    "idempotency_key": "text of 8 to 256 characters",
    "received_at": "an RFC 3339 time such as 2026-11-29T18:00:00Z",
    "attributes": "an object",
}


_OPTIONAL = _HINTS.keys() - {"id", "state"}


def _read_version_1(record: dict[str, JsonValue]) -> Ticket | Malformed:
    record = without_nulls(record, _OPTIONAL)
    try:
        # The adapter's own method takes twice as long, for all that it passes on.
        checked = _check().validator.validate_python(few_unknown(record, _HINTS))
    except ValidationError as err:
        return wrong_fields(err, record, _HINTS, unknown="what is yours goes into attributes")
    return Ticket(
        id=checked["id"],
        state=checked["state"],
        tenant=checked.get("tenant", ""),
        idempotency_key=checked.get("idempotency_key"),
        received_at=checked.get("received_at"),
        attributes=checked.get("attributes", {}),
    )


_VERSIONS: Versions[Ticket] = Versions("ticket", {1: _read_version_1})

TICKET_SCHEMA = _VERSIONS.current


def read_ticket(value: JsonValue) -> Ticket | Malformed:
    """The ticket that a decoded value is, or a reason at stage `schema` that names every wrong field at once.

    A ticket without `schema` is read as the newest version. Null is absence where a field may be absent, and wrong
    where it must stand.
    """
    if not isinstance(value, dict):
        return Malformed(Stage.SCHEMA, "not_an_object", f"a ticket is a JSON object, not {wrong_kind(value)}")
    return _VERSIONS.read(value)


def decode_ticket(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Ticket | Malformed:
    """The ticket that a record's value is: the gates `parse` and `schema` as one total function."""
    value = decode(data, max_bytes=max_bytes)
    return value if isinstance(value, Malformed) else read_ticket(value)


def is_empty_state(state: JsonValue) -> bool:
    """Whether there is nothing in `state` to read: no character that shows, no number, no true or false.

    Blanks, control, formatting and zero-width characters do not show. In an object or array its values count
    and its keys do not: `{"subject": "", "body": null}` is a form that nobody filled in.
    """
    todo: list[JsonValue] = [state]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            # Most texts begin with what shows, and no ASCII letter or digit is blank.
            if (item[:1].isascii() and item[:1].isalnum()) or not all(_is_blank(char) for char in item):
                return False
        elif isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
        elif item is not None:
            return False
    return True


# Letters and marks by category, yet drawn as nothing: Hangul fillers, Khmer inherent vowels, Mongolian and
# other variation selectors, the grapheme joiner, the empty Braille cell.
_DRAWN_AS_NOTHING = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
) | frozenset(map(chr, range(0xE0100, 0xE01F0)))

_BLANK_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def _is_blank(char: str) -> bool:
    return unicodedata.category(char) in _BLANK_CATEGORIES or char in _DRAWN_AS_NOTHING
