"""A record's shape judged whole: every wrong field named at once, in words for the person who sent it.

A record's fields are described once, as a TypedDict, from which pydantic checks it and the published JSON
Schemas are made (`codecs.published`). Here pydantic's findings become our reasons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ticketgate.codecs.malformed import Malformed, quote, wrong_kind
from ticketgate.codecs.verdict import Stage

__all__ = ["wrong_fields"]

# All known fields can be wrong at once and each is named; unknown ones can be thousands.
_MAX_NAMED = 24

_CODES = {"missing": "missing_field", "extra_forbidden": "unknown_field"}
_LENGTHS = frozenset({"string_too_short", "string_too_long", "too_short", "too_long"})


def wrong_fields(error: ValidationError, fields: Iterable[str], hints: dict[str, str]) -> Malformed:
    """One `Malformed` at stage `schema` that names every wrong field of the record that `error` speaks of.

    fields: the known fields in the order in which to name them; unknown ones follow in the record's order.
    hints: by field, what it must be, as in `must be {hint}`; `""` is what to do about an unknown field.
    The code is that of the first field named.
    """
    found: dict[str, ErrorDetails] = {}
    for detail in error.errors(include_url=False, include_context=False):
        # A union reports each of its branches, a nested field its way down: the first speaks for the field.
        found.setdefault(str(detail["loc"][0]) if detail["loc"] else "", detail)
    known = [name for name in fields if name in found]
    named = known + [name for name in found if name not in set(known)]
    reasons = [_reason(name, found[name], hints) for name in named[:_MAX_NAMED]]
    if len(named) > _MAX_NAMED:
        reasons.append(f"and {len(named) - _MAX_NAMED} more")
    return Malformed(Stage.SCHEMA, _code(found[named[0]]), "; ".join(reasons))


def _reason(name: str, detail: ErrorDetails, hints: dict[str, str]) -> str:
    if detail["type"] == "missing" and len(detail["loc"]) == 1:
        return f"{quote(name)} is missing: must be {hints[name]}"
    if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
        return f"unknown field {quote(name)}: {hints['']}"
    return f"{quote(name)} must be {hints[name]}, not {_given(detail)}"


def _given(detail: ErrorDetails) -> str:
    value: Any = detail["input"]
    if len(detail["loc"]) > 1 and isinstance(detail["loc"][-1], int | str):
        within = ".".join(str(step) for step in detail["loc"][1:])
        return f"{wrong_kind(value)} at {quote(within)} ({detail['msg']})"
    if isinstance(value, str):
        return f"text of {len(value)} characters" if detail["type"] in _LENGTHS else quote(value)
    return wrong_kind(value)


def _code(detail: ErrorDetails) -> str:
    if detail["input"] is None and detail["type"] != "missing":
        return "null_field"
    if detail["type"] in _LENGTHS:
        return "wrong_length"
    if detail["type"].startswith("value_error") or detail["type"] == "literal_error":
        return "wrong_value"
    return _CODES.get(detail["type"], "wrong_type")
