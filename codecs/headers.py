"""Kafka headers: ours, and everybody else's passed on byte for byte (DESIGN section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from ticketgate.codecs.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.malformed import Malformed, shorten

__all__ = [
    "COORDINATE",
    "DEAD_LETTER_SCHEMA",
    "ERROR_CODE",
    "ERROR_REASON",
    "ERROR_STAGE",
    "FINGERPRINT",
    "IDEMPOTENCY_KEY",
    "PREFIX",
    "SCHEMA",
    "Header",
    "dead_letter_headers",
    "decision_headers",
    "foreign",
    "header",
    "record_headers",
]

Header: TypeAlias = tuple[str, bytes]

PREFIX = "ticketgate-"
IDEMPOTENCY_KEY = "ticketgate-idempotency-key"
FINGERPRINT = "ticketgate-fingerprint"
COORDINATE = "ticketgate-coordinate"
SCHEMA = "ticketgate-schema"
ERROR_STAGE = "ticketgate-error-stage"
ERROR_REASON = "ticketgate-error-reason"
ERROR_CODE = "ticketgate-error-code"

DEAD_LETTER_SCHEMA = "dead-letter/1"

# Headers count towards a record's size; a reason that names many wrong fields is still a reason.
MAX_REASON_CHARS = 2_000


class _Identified(Protocol):
    """What a decision record, or another record with an identity, has."""

    @property
    def idempotency_key(self) -> IdempotencyKey: ...
    @property
    def fingerprint(self) -> Fingerprint: ...
    @property
    def coordinate(self) -> Coordinate: ...


def foreign(headers: Iterable[Header]) -> tuple[Header, ...]:
    """The headers that are not ours, in order, repeated names and values untouched.

    Ours is every name that begins with `ticketgate-` in any spelling of case: no producer can forge one.
    """
    return tuple(header for header in headers if not header[0].casefold().startswith(PREFIX))


def decision_headers(record: _Identified, *, schema: str = "decision/1") -> tuple[Header, ...]:
    """Our headers on an output record; `claims rebuild` restores its claim from them alone."""
    return record_headers(
        idempotency_key=record.idempotency_key,
        fingerprint=record.fingerprint,
        coordinate=record.coordinate,
        schema=schema,
    )


def record_headers(
    *, idempotency_key: IdempotencyKey, fingerprint: Fingerprint, coordinate: Coordinate, schema: str
) -> tuple[Header, ...]:
    """As `decision_headers`, from the parts."""
    return (
        (IDEMPOTENCY_KEY, idempotency_key.encode("utf-8")),
        (FINGERPRINT, fingerprint.encode("utf-8")),
        (COORDINATE, str(coordinate).encode("utf-8")),
        (SCHEMA, schema.encode("utf-8")),
    )


def dead_letter_headers(malformed: Malformed, coordinate: Coordinate) -> tuple[Header, ...]:
    """Our headers on a dead-lettered record: why it was refused, and where it lay. Values are UTF-8."""
    reason = shorten(malformed.reason, MAX_REASON_CHARS)
    return (
        (ERROR_STAGE, malformed.stage.encode("utf-8")),
        (ERROR_REASON, reason.encode("utf-8", "replace")),
        (ERROR_CODE, malformed.code.encode("utf-8")),
        (COORDINATE, str(coordinate).encode("utf-8")),
        (SCHEMA, DEAD_LETTER_SCHEMA.encode("utf-8")),
    )


def header(headers: Sequence[Header], name: str) -> bytes | None:
    """The value of the last header of that name, which is the one that counts, or None."""
    return next((value for key, value in reversed(headers) if key == name), None)
