"""The wire's rules read a second time, by itself, with the standard library's json.

Shares no code with ticketgate.codecs, and says only taken or refused, not why.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from typing import Any


class Refused(Exception):
    """The bytes are not what the rules take."""


def value_of(data: bytes, *, max_bytes: int = 262_144) -> Any:
    """The JSON value that `data` is. Raises Refused."""
    if len(data) > max_bytes or data[:3] == b"\xef\xbb\xbf":
        raise Refused
    try:
        value = json.loads(
            data.decode("utf-8"),
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError) as err:
        raise Refused from err
    if _depth(value) > 64 or any(0xD800 <= ord(char) <= 0xDFFF for text in _texts(value) for char in text):
        raise Refused
    return value


_MAY_BE_ABSENT = {"schema", "tenant", "idempotency_key", "received_at", "attributes"}


def is_ticket(value: Any) -> bool:
    """Whether a JSON value has the shape of ticket/1; null is absence but where something must stand."""
    if type(value) is dict:
        value = {name: each for name, each in value.items() if each is not None or name not in _MAY_BE_ABSENT}
    wanted = {"id", "state", "schema", "tenant", "idempotency_key", "received_at", "attributes"}
    return (
        type(value) is dict
        and wanted >= set(value) >= {"id", "state"}
        and type(value["id"]) is str
        and 1 <= len(value["id"]) <= 256
        and type(value["state"]) in (str, dict, list)
        and value.get("schema", "ticket/1") == "ticket/1"
        and type(value.get("tenant", "")) is str
        and type(value.get("attributes", {})) is dict
        and type(value.get("idempotency_key", "eight...")) is str
        and 8 <= len(value.get("idempotency_key", "eight...")) <= 256
        and _is_time(value.get("received_at", "2026-11-29T18:00:00Z"))
    )


def _is_time(value: Any) -> bool:
    if type(value) is not str:
        return False
    match = re.fullmatch(
        r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", value, re.ASCII
    )
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    sign, ahead_h, ahead_m = match[8], int(match[9] or 0), int(match[10] or 0)
    if hour > 23 or minute > 59 or second > 60 or ahead_h > 23 or ahead_m > 59:
        return False
    try:
        days = dt.date(year, month, day).toordinal()
    except ValueError:
        return False
    ahead = (ahead_h * 60 + ahead_m) * (-1 if sign == "-" else 1)
    in_utc = days * 1440 + hour * 60 + minute - ahead
    return 1440 <= in_utc < (dt.date.max.toordinal() + 1) * 1440


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise Refused
    return int(digits)


def _float(written: str) -> float:
    whole = re.split("[.eE]", written.lstrip("-"))[0]
    if len(whole) > 4300 or math.isinf(float(written)):
        raise Refused
    return float(written)


def _constant(name: str) -> Any:
    raise Refused(name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise Refused
    return dict(pairs)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, entry in value.items() for text in (key, *_texts(entry))]
    return [text for entry in value for text in _texts(entry)] if isinstance(value, list) else []
