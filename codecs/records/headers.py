"""Kafka headers: ours, and everybody else's passed on byte for byte."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Protocol, TypeAlias

from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.values.malformed import Malformed, shorten
from ticketgate.codecs.values.strict import encode

__all__ = [
    "CONTENT",
    "COORDINATE",
    "DEAD_LETTER_SCHEMA",
    "ERROR_CODE",
    "ERROR_REASON",
    "ERROR_STAGE",
    "FINGERPRINT",
    "IDEMPOTENCY_KEY",
    "ORIGINAL_TIMESTAMP",
    "PREFIX",
    "SCHEMA",
    "SETTLES",
    "UNREADABLE_HEADERS",
    "Header",
    "dead_letter_headers",
    "decision_headers",
    "escape_name",
    "foreign",
    "has_readable_name",
    "header",
    "receipt_headers",
    "record_headers",
    "unescape_name",
    "unreadable_headers",
]

# Name and value, which may be null. A name that is not UTF-8 has its bytes as surrogate escapes.
Header: TypeAlias = tuple[str, bytes | None]

PREFIX = "ticketgate-"
IDEMPOTENCY_KEY = "ticketgate-idempotency-key"
FINGERPRINT = "ticketgate-fingerprint"
COORDINATE = "ticketgate-coordinate"
SCHEMA = "ticketgate-schema"
ERROR_STAGE = "ticketgate-error-stage"
ERROR_REASON = "ticketgate-error-reason"
ERROR_CODE = "ticketgate-error-code"
# On a dead letter whose value is not the original's: `digest` or `batch` (records.py says when).
CONTENT = "ticketgate-content"
UNREADABLE_HEADERS = "ticketgate-unreadable-headers"
# On a dead letter the time of the original in ms since 1970, -1 where it had none: by its own time, whatever it claims,
# retention would take the dead letter before a person has seen it, or never.
ORIGINAL_TIMESTAMP = "ticketgate-original-timestamp"

# On what settled a ticket, the ticket's own claim, `topic:partition:offset:fingerprint`: a rebuild restores both.
SETTLES = "ticketgate-settles"

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
    """The headers that are not ours and can be sent, in order, repeated names and values untouched.

    Ours is every name that begins with `ticketgate-` in any spelling of case: no producer can forge one.
    """
    return tuple(
        header
        for header in headers
        if not header[0].casefold().startswith(PREFIX) and has_readable_name(header)
    )


def decision_headers(record: _Identified, *, schema: str = "decision/1") -> tuple[Header, ...]:
    """Our headers on an output record; `claims rebuild` restores its claim from them alone."""
    return record_headers(
        idempotency_key=record.idempotency_key,
        fingerprint=record.fingerprint,
        coordinate=record.coordinate,
        schema=schema,
    )


class _Receipt(Protocol):
    """What a decision or effect receipt has."""

    @property
    def idempotency_key(self) -> str | None: ...
    @property
    def source(self) -> Coordinate | None: ...


def receipt_headers(receipt: _Receipt, *, schema: str = "receipt/1") -> tuple[Header, ...]:
    """Our headers on a receipt, as far as it says: its effect's or attempt's key, and where lies what it is of.

    Without a fingerprint, so that nothing takes a receipt for the record that a claim rests on.
    """
    given = ((IDEMPOTENCY_KEY, receipt.idempotency_key), (COORDINATE, receipt.source), (SCHEMA, schema))
    return tuple((name, str(value).encode("utf-8")) for name, value in given if value is not None)


def record_headers(
    *, idempotency_key: IdempotencyKey, fingerprint: Fingerprint, coordinate: Coordinate, schema: str
) -> tuple[Header, ...]:
    """As `decision_headers`, from the parts."""
    return (
        (IDEMPOTENCY_KEY, idempotency_key.encode("utf-8")),
        (FINGERPRINT, fingerprint.encode("utf-8")),
        (COORDINATE, str(coordinate).encode("utf-8")),
        _schema_header(schema),
    )


@cache
def _schema_header(schema: str) -> Header:
    return (SCHEMA, schema.encode("utf-8"))


def dead_letter_headers(
    malformed: Malformed, coordinate: Coordinate, *, timestamp_ms: int | None = None
) -> tuple[Header, ...]:
    """Our headers on a dead-lettered record: why it was refused, where it lay, and its time (ORIGINAL_TIMESTAMP) if one
    is given. Values are UTF-8."""
    reason = shorten(malformed.reason, MAX_REASON_CHARS)
    time = () if timestamp_ms is None else ((ORIGINAL_TIMESTAMP, str(timestamp_ms).encode("ascii")),)
    return (
        (ERROR_STAGE, malformed.stage.encode("utf-8")),
        (ERROR_REASON, reason.encode("utf-8", "replace")),
        (ERROR_CODE, malformed.code.encode("utf-8")),
        (COORDINATE, str(coordinate).encode("utf-8")),
        (SCHEMA, DEAD_LETTER_SCHEMA.encode("utf-8")),
        *time,
    )


def has_readable_name(header: Header) -> bool:
    """Whether a header's name is UTF-8: no other can be sent again."""
    try:
        header[0].encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def escape_name(name: str) -> str:
    r"""A header's name as a person can read it, whatever its bytes: `\xff` for one that is not UTF-8, `\\` for `\`."""
    escaped = name.replace("\\", "\\\\").encode("utf-8", "surrogateescape")
    return escaped.decode("utf-8", "backslashreplace")


def unescape_name(text: str) -> str:
    """The name that `escape_name` wrote so. Raises ValueError."""

    def unescaped(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            raise ValueError(
                r"a backslash stands for itself as \\, and else before x and two digits, as in \xff"
            )
        return found[1] if found[2] is None else bytes.fromhex(found[2].decode("ascii"))

    data = re.sub(rb"\\(\\|x([0-9a-f]{2}))?", unescaped, text.encode("utf-8"))
    return data.decode("utf-8", "surrogateescape")


def unreadable_headers(headers: Iterable[Header]) -> tuple[Header, ...]:
    """One header of ours that carries those whose names are not UTF-8, or none if all are.

    Its value is JSON: [[name, value], …] in order, each in base64, and null for a value that is null.
    """
    found = [
        [_base64(name.encode("utf-8", "surrogateescape")), None if value is None else _base64(value)]
        for name, value in headers
        if not has_readable_name((name, value))
    ]
    return ((UNREADABLE_HEADERS, encode(found)),) if found else ()


def header(headers: Sequence[Header], name: str) -> bytes | None:
    """The value of the last header of that name, which is the one that counts, or None."""
    return next((value for key, value in reversed(headers) if key == name), None)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
