r"""Kafka records as JSON lines, both ways: the form that `consume` prints and `produce` reads.

A line is an envelope if it is an object with `value`, `value_text` or `value_base64`:

    topic, partition, offset   where it lies; `produce` goes by `partition` alone, if it stands there
    timestamp_ms               milliseconds since 1970; null or absent: the producer's clock
    key                        text, null for no key; `key_base64` in its place if the bytes are not UTF-8
    headers                    in order: [name, text], [name, {"base64": …}] or [name, null]; a name whose bytes are
                               not UTF-8 is {"escaped": …}, such as bad\xffname, with \\ for each \
    value                      the JSON value; null, alone, is a tombstone
    value_text, value_base64   the exact bytes, where `value` does not give them: not JSON, or JSON in another
                               spelling than ours (compact UTF-8), such as with white space. `value` stands beside
                               `value_text` wherever the bytes are JSON, so that jq always finds it

Promise: `read_line(write_line(record))` has the same bytes in key, value and headers, null kept apart from empty.
That does not hang on a line's spelling, so it survives jq and the like; who changes `value` beside a `value_text`
drops the latter, and is told so.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ticketgate.codecs.records.headers import escape_name, has_readable_name, unescape_name
from ticketgate.codecs.values.limits import MAX_FILE_BYTES, MAX_OWN_DEPTH
from ticketgate.codecs.values.malformed import quote, wrong_kind
from ticketgate.codecs.values.printable import printable_json
from ticketgate.codecs.values.strict import JsonValue, Malformed, canonical, decode, encode, is_within_depth

Headers = tuple[tuple[str, bytes | None], ...]

_VALUES = ("value", "value_text", "value_base64")
_FIELDS = ("topic", "partition", "offset", "timestamp_ms", "key", "key_base64", "headers", *_VALUES)
_MAX_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Record:
    """What is sent. `value` None is a tombstone; `partition` None places by key, `timestamp_ms` None is now."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class ReadRecord(Protocol):
    """A record that came from a topic: aiokafka's ConsumerRecord, for one."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


class LineError(ValueError):
    """A line that cannot be sent. The message says what is wrong with it and the way out."""


def write_line(record: ReadRecord) -> bytes:
    """The record's envelope, one line of JSON without its newline."""
    fields: dict[str, JsonValue] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        # Kafka's -1 says that the record has no time.
        "timestamp_ms": record.timestamp if record.timestamp >= 0 else None,
    }
    line = encode(
        fields
        | _write_bytes("key", record.key)
        | {"headers": [[_write_name(name), _write_header(value)] for name, value in record.headers]}
        | _write_value(record.value)
    )
    # As JSON has it, so that the line reads back the same and does nothing to who looks at it.
    return line if line.isascii() and b"\x7f" not in line else printable_json(line.decode()).encode()


def read_line(line: bytes, *, key_field: str = "id") -> Record:
    """The record that a line asks to send: its envelope's, or the line itself under its ticket's id as the key.

    key_field: where the key stands in a line that is no envelope; `case_id` in a proposal. Raises LineError.
    """
    line = line.strip()
    value = decode(line, max_bytes=MAX_FILE_BYTES, is_our_own=True)
    if isinstance(value, Malformed):
        raise LineError(f"{value.reason}; --raw sends lines as they are")
    if not isinstance(value, dict):
        raise LineError(
            f"neither a ticket nor an envelope, which are objects, but {wrong_kind(value)};"
            ' write {"value": …}, or --raw sends lines as they are'
        )
    if any(field in value for field in _VALUES):
        return _read_envelope(value)
    if value and all(name in _FIELDS for name in value):
        raise LineError(
            "an envelope without value, value_text or value_base64; a tombstone is written {…, value: null}"
        )
    key = value.get(key_field)
    # Not checked here: only who knows the topic knows what its records must be.
    return Record(key=key.encode() if isinstance(key, str) else None, value=line)


def _read_envelope(fields: Mapping[str, JsonValue]) -> Record:
    for name in fields:
        if name not in _FIELDS:
            raise LineError(
                f"unknown field {quote(name)} in an envelope, which any object with value, value_text or"
                " value_base64 is; if that is no envelope, put the whole into value"
            )
    return Record(
        key=_read_bytes("key", fields, text="key"),
        value=_read_value(fields),
        headers=_read_headers(fields.get("headers")),
        partition=_read_number(fields, "partition", most=2**31 - 1),
        timestamp_ms=_read_number(fields, "timestamp_ms", most=_MAX_INT64),
    )


# --- writing ---


def _write_value(value: bytes | None) -> dict[str, JsonValue]:
    if value is None:
        return {"value": None}
    found = decode(value, max_bytes=max(len(value), 1), is_our_own=True)
    if isinstance(found, Malformed) or _is_too_deep(value, found):
        return _write_bytes("value", value, text="value_text")
    # A tombstone has `value: null` for its own, so JSON's null needs its bytes told.
    if found is not None and encode(found) == value:
        return {"value": found}
    return {"value": found, "value_text": value.decode()}


def _is_too_deep(value: bytes, found: JsonValue) -> bool:
    """Whether the line would be nested beyond what is read, since it is one deeper than the value."""
    if value.count(b"{") + value.count(b"[") < MAX_OWN_DEPTH:
        return False
    return not is_within_depth(found, MAX_OWN_DEPTH - 1)


def _write_bytes(name: str, data: bytes | None, *, text: str | None = None) -> dict[str, JsonValue]:
    """`data` as text under the name `text`, as null, or in base64."""
    if data is None:
        return {text or name: None}
    try:
        return {text or name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": _to_base64(data)}


def _write_name(name: str) -> JsonValue:
    return name if has_readable_name((name, None)) else {"escaped": escape_name(name)}


def _write_header(value: bytes | None) -> JsonValue:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": _to_base64(value)}


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


# --- reading ---


def _read_value(fields: Mapping[str, JsonValue]) -> bytes | None:
    if "value_text" not in fields and "value_base64" not in fields:
        value = fields["value"]
        return None if value is None else encode(value)
    data = _read_bytes("value", fields, text="value_text")
    exact = "value_text" if "value_text" in fields else "value_base64"
    if data is None:
        raise LineError(f"{exact} must be text, not null; a tombstone is value: null alone")
    if "value" in fields:
        meant = decode(data, max_bytes=MAX_FILE_BYTES, is_our_own=True)
        # Compared in canonical form, since tools spell numbers in their own way.
        if isinstance(meant, Malformed) or canonical(meant) != canonical(fields["value"]):
            raise LineError(f"value and {exact} differ; drop {exact} to send value, or value to send {exact}")
    return data


def _read_bytes(name: str, fields: Mapping[str, JsonValue], *, text: str) -> bytes | None:
    coded = f"{name}_base64"
    if text in fields and coded in fields:
        raise LineError(f"{text} and {coded} both stand; drop one of them")
    if coded in fields:
        return _from_base64(coded, fields[coded])
    value = fields.get(text)
    if value is None:
        return None
    if not isinstance(value, str):
        raise LineError(f"{text} must be text or null, not {wrong_kind(value)}")
    return value.encode()


def _read_headers(value: JsonValue) -> Headers:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise LineError(f"headers must be an array of [name, value] pairs, not {wrong_kind(value)}")
    return tuple(_read_header(place, pair) for place, pair in enumerate(value))


def _read_header(place: int, pair: JsonValue) -> tuple[str, bytes | None]:
    match pair:
        case [{"escaped": str(escaped), **rest}, value] if not rest:
            try:
                pair = [unescape_name(escaped), value]
            except ValueError as err:
                raise LineError(f"headers[{place}]: {err}") from err
    match pair:
        case [str(name), None]:
            return name, None
        case [str(name), str(text)]:
            return name, text.encode()
        case [str(name), {"base64": coded, **rest}] if not rest:
            return name, _from_base64(f"header {quote(name)}", coded)
        case _:
            raise LineError(f'headers[{place}] must be [name, text], [name, {{"base64": …}}] or [name, null]')


def _read_number(fields: Mapping[str, JsonValue], name: str, *, most: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise LineError(f"{name} must be a whole number from 0 to {most} or null, not {wrong_kind(value)}")
    return value


def _from_base64(what: str, coded: JsonValue) -> bytes:
    if not isinstance(coded, str):
        raise LineError(f"{what} must be base64, not {wrong_kind(coded)}")
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError) as err:
        raise LineError(f"{what} is not base64 ({err})") from err
