"""A record's shape judged whole: every wrong field named at once, in words for the person who sent it.

A record's fields are described once, as a TypedDict, from which pydantic checks it and the published JSON
Schemas are made (`codecs.published`). Here pydantic's findings become our reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from ticketgate.codecs.values.malformed import Malformed, quote, wrong_kind
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage

__all__ = [
    "FORBID_UNKNOWN",
    "IGNORE_UNKNOWN",
    "few_unknown",
    "read_written",
    "without_nulls",
    "wrong_fields",
]

Document = TypeVar("Document")
Record = TypeVar("Record")

# What a reader does with a field that it does not know: what users send is refused by name, what a newer worker of
# ours wrote is let be.
FORBID_UNKNOWN = ConfigDict(extra="forbid", strict=True)
IGNORE_UNKNOWN = ConfigDict(extra="ignore", strict=True)

# All known fields can be wrong at once and each is named; unknown ones can be thousands.
_MAX_NAMED = 24
MOST_UNKNOWN = 32

_LENGTHS = frozenset({"string_too_short", "string_too_long"})
_VALUES = frozenset({"value_error", "literal_error", "enum", "greater_than_equal", "less_than_equal"})


def few_unknown(record: Mapping[str, JsonValue], known: Container[str]) -> Mapping[str, JsonValue]:
    """`record` with at most MOST_UNKNOWN fields that are not known: what pydantic says of each takes a hundred times
    as much as the field."""
    if len(record) <= MOST_UNKNOWN:
        return record
    unknown = [name for name in record if name not in known]
    if len(unknown) <= MOST_UNKNOWN:
        return record
    kept = set(unknown[:MOST_UNKNOWN])
    return {name: value for name, value in record.items() if name in known or name in kept}


def without_nulls(
    record: dict[str, JsonValue],
    optional: Container[str] | None,
    *,
    inside: Mapping[str, Container[str] | None] = MappingProxyType({}),
) -> dict[str, JsonValue]:
    """`record` without what is null and may be left out, which says the same; `record` itself where nothing is null.

    optional: what may be left out; None: all. inside: of objects that lie in these fields, what may be left out there.
    """
    for name, of_field in inside.items():
        if isinstance(value := record.get(name), dict) and None in value.values():
            record = {**record, name: without_nulls(value, of_field)}
    if None not in record.values():
        return record
    return {
        name: value
        for name, value in record.items()
        if value is not None or (optional is not None and name not in optional)
    }


def read_written(
    value: dict[str, JsonValue],
    check: TypeAdapter[Document],
    make: Callable[[Document], Record],
    *,
    fields: Iterable[str],
    schema: str,
) -> Record | Malformed:
    """A record of ours, checked whole and then made; a reason at stage `schema` if it is none or contradicts itself.

    fields: its document's, in their order. schema: its name and version. `make` raises ValueError for a contradiction.
    """
    try:
        checked = check.validate_python(value)
    except ValidationError as err:
        return wrong_fields(
            err, value, dict.fromkeys(fields, f"as {schema} says"), unknown=f"not one of {schema}"
        )
    try:
        return make(checked)
    except ValueError as err:
        return Malformed(Stage.SCHEMA, "contradiction", str(err))


def wrong_fields(
    error: ValidationError, record: Mapping[str, JsonValue], hints: Mapping[str, str], *, unknown: str
) -> Malformed:
    """One `Malformed` at stage `schema` that names every wrong field of `record`, of which `error` speaks.

    hints: the known fields, in the order in which to name them, each with what it must be, as in
    `must be {hint}`. unknown: what to do about a field that is not known; these are named last.
    The code is that of the first field named.
    """
    hidden = sum(1 for name in record if name not in hints) - MOST_UNKNOWN
    found: dict[str, ErrorDetails] = {}
    for detail in error.errors(include_url=False, include_context=False):
        # A union reports each of its branches, a nested value all that is wrong in it: the first speaks for all.
        found.setdefault(str(detail["loc"][0]), detail)
    named = [name for name in hints if name in found] + [name for name in found if name not in hints]
    reasons = [_reason(found[name], record, hints, unknown) for name in named[:_MAX_NAMED]]
    if (more := len(named) - len(reasons) + max(0, hidden)) > 0:
        reasons.append(f"and {more} more")
    return Malformed(Stage.SCHEMA, _code(found[named[0]]), "; ".join(reasons))


def _reason(
    detail: ErrorDetails, record: Mapping[str, JsonValue], hints: Mapping[str, str], unknown: str
) -> str:
    name = str(detail["loc"][0])
    if name not in hints:
        return f"unknown field {quote(name)}: {unknown}"
    if name not in record:
        return f"{quote(name)} is missing: must be {hints[name]}"
    value = record[name]
    if len(detail["loc"]) > 1 and detail["input"] is not value:
        steps = _steps(detail, record)
        within = quote(".".join(str(step) for step in steps))
        # Of a union's branches the first speaks, and would name one type where there are several.
        is_union = len(steps) < len(detail["loc"])
        what = f" stands {wrong_kind(detail['input'])}" if is_union else f": {detail['msg']}"
        return f"{quote(name)} must be {hints[name]}: at {within}{what}"
    return f"{quote(name)} must be {hints[name]}, not {_given(value, detail['type'])}"


def _steps(detail: ErrorDetails, record: Mapping[str, JsonValue]) -> tuple[int | str, ...]:
    """The place of a finding, without the branch of a union that pydantic names behind it."""
    value: object = record
    for count, step in enumerate(detail["loc"]):
        if isinstance(value, Mapping) and (step in value or detail["type"] == "missing"):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return detail["loc"][:count]
    return detail["loc"]


def _given(value: JsonValue, fault: str) -> str:
    if isinstance(value, str):
        return f"text of {len(value)} characters" if fault in _LENGTHS else quote(value)
    return wrong_kind(value)


def _code(detail: ErrorDetails) -> str:
    fault = detail["type"]
    if fault == "missing":
        return "missing_field"
    if fault == "extra_forbidden":
        return "unknown_field"
    if detail["input"] is None:
        return "null_field"
    if fault in _LENGTHS:
        return "wrong_length"
    return "wrong_value" if fault in _VALUES else "wrong_type"
