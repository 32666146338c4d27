"""A JSON Schema's properties: what may be answered of each, and the question that asks for it.

Promise: a keyword that is not understood is refused by its property's name, for one that is passed over would let a
value through that the schema forbids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ticketgate.codecs.systemone.questions import (
    MAX_OPTIONS,
    ChoiceQuestion,
    NoulQuestion,
    Question,
    ScoreQuestion,
)
from ticketgate.codecs.values.malformed import quote, shorten, wrong_kind
from ticketgate.codecs.values.strict import JsonValue, encode

MAX_PROPERTIES, MAX_LEVELS = 32, 10

_ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)
_TOP_LEVEL: Final = _ANNOTATIONS | {
    "type", "properties", "required", "additionalProperties", "$schema", "$id", "$defs", "definitions",
}  # fmt: skip
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


class SchemaError(ValueError):
    """A schema that cannot be asked, or an answer that does not fit it. `name`: the property, None for the whole."""

    def __init__(self, name: str | None, reason: str) -> None:
        super().__init__(f"the schema: {reason}" if name is None else f"properties.{shorten(name)}: {reason}")
        self.name, self.reason = name, reason


@dataclass(frozen=True, slots=True)
class Property:
    """`values` are those that may be answered, in the order of the question's labels; one value has no question."""

    question: Question | None
    values: tuple[JsonValue, ...]
    is_required: bool = False


def read_properties(schema: JsonValue) -> dict[str, Property]:
    """The properties by name, in the schema's order. Raises SchemaError."""
    if not isinstance(schema, dict):
        raise SchemaError(None, f"must be an object, not {wrong_kind(schema)}")
    if schema.get("type") != "object":
        raise SchemaError(None, 'must say type: "object"')
    if unknown := [key for key in schema if key not in _TOP_LEVEL]:
        raise SchemaError(None, f"keyword {quote(unknown[0])} is not supported")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise SchemaError(None, "must have properties, at least one")
    if len(properties) > MAX_PROPERTIES:
        raise SchemaError(None, f"has {len(properties)} properties, more than {MAX_PROPERTIES}")
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise SchemaError(None, f"required must be an array, not {wrong_kind(required)}")
    for name in required:
        if not isinstance(name, str) or name not in properties:
            told = name if isinstance(name, str) else wrong_kind(name)
            raise SchemaError(told, "is required, and has no schema")
    return {
        name: replace(_property(name, each), is_required=name in required)
        for name, each in properties.items()
    }


def _property(name: str, schema: JsonValue) -> Property:
    if not name:
        raise SchemaError(name, "a property needs a name")
    found, asked = _unwrapped(name, schema)
    instructions = asked or name
    if "enum" in found or "const" in found:
        return _enumerated(name, found, instructions)
    kind = found.get("type")
    if kind == "boolean":
        _require_only(name, found, {"type"})
        return _noul(instructions)
    if kind in ("integer", "number"):
        return _bounded(name, found, instructions)
    raise SchemaError(name, _unsupported(found))


def _unsupported(found: Mapping[str, JsonValue]) -> str:
    match found.get("type"):
        case "string":
            return "a free string has no finite set of values; give it an enum"
        case "array":
            return "an array is not supported"
        case "object":
            return "a nested object is not supported"
        case None:
            return "needs a type, an enum or a const"
        case other:
            return f"type {_told(other)} is not supported"


def _told(kind: JsonValue) -> str:
    return repr(shorten(kind)) if isinstance(kind, str) else wrong_kind(kind)


def _unwrapped(name: str, schema: JsonValue) -> tuple[dict[str, JsonValue], str | None]:
    """The schema behind Optional, and the outermost description or title."""
    asked: str | None = None
    while True:
        if not isinstance(schema, dict):
            raise SchemaError(name, f"its schema must be an object, not {wrong_kind(schema)}")
        if "$ref" in schema:
            raise SchemaError(name, "$ref is not supported; write the schema in its place")
        for key in ("description", "title"):
            if asked is None and isinstance(text := schema.get(key), str) and text.strip():
                asked = text
        unions = [key for key in ("anyOf", "oneOf") if key in schema]
        if not unions:
            return _without_null(name, schema), asked
        union = unions[0]
        _require_only(name, schema, {union})
        branches = schema[union]
        if not isinstance(branches, list):
            raise SchemaError(name, f"{union} must be an array, not {wrong_kind(branches)}")
        others = [each for each in branches if each != {"type": "null"}]
        if len(others) != 1:
            raise SchemaError(name, f"{union} must have one branch beside null, not {len(others)}")
        schema = others[0]


def _without_null(name: str, schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    kinds = schema.get("type")
    if not isinstance(kinds, list):
        return schema
    others = [kind for kind in kinds if kind != "null"]
    if len(others) != 1:
        raise SchemaError(name, f"type must name one type beside null, not {len(others)}")
    found = {**schema, "type": others[0]}
    if isinstance(enum := schema.get("enum"), list):
        found["enum"] = [value for value in enum if value is not None]
    return found


def _enumerated(name: str, schema: Mapping[str, JsonValue], instructions: str) -> Property:
    _require_only(name, schema, {"enum", "const", "type"})
    values = _listed_values(name, schema)
    _require_type(name, schema.get("type"), values)
    labels = [value if isinstance(value, str) else _written(name, value) for value in values]
    for place, label in enumerate(labels):
        if label in labels[:place]:
            raise SchemaError(name, f"two values are both written {quote(label)}")
    if len(values) == 1:
        return Property(None, tuple(values))
    if all(isinstance(value, bool) for value in values):
        return _noul(instructions)
    if "" in labels:
        raise SchemaError(name, "an empty text cannot be an option's label")
    question = ChoiceQuestion(instructions, dict.fromkeys(labels), values=tuple(values))
    return Property(question, tuple(values))


def _noul(instructions: str) -> Property:
    return Property(NoulQuestion(instructions, values=(False, True)), (False, True))


def _listed_values(name: str, schema: Mapping[str, JsonValue]) -> list[JsonValue]:
    values = schema.get("enum", [schema.get("const")])
    if not isinstance(values, list) or not values:
        raise SchemaError(name, "enum must be an array of at least one value")
    if len(values) > MAX_OPTIONS:
        raise SchemaError(name, f"has {len(values)} values, more than {MAX_OPTIONS}")
    for value in values:
        if isinstance(value, (dict, list)):
            raise SchemaError(
                name, f"a value must be text, a number, true, false or null, not {wrong_kind(value)}"
            )
    if "const" not in schema:
        return values
    # By their JSON, for to Python true equals 1.
    if _written(name, schema["const"]) not in [_written(name, value) for value in values]:
        raise SchemaError(name, "const is no value of its enum")
    return [schema["const"]]


def _require_type(name: str, kind: JsonValue, values: list[JsonValue]) -> None:
    if kind is None:
        return
    if not isinstance(kind, str) or kind not in _TYPES:
        raise SchemaError(name, f"type {_told(kind)} has no values that can be listed")
    for value in values:
        is_boolean = isinstance(value, bool)
        if not isinstance(value, _TYPES[kind]) or is_boolean != (kind == "boolean"):
            raise SchemaError(name, f"value {shorten(_written(name, value))} is not of its type {kind}")


def _bounded(name: str, schema: Mapping[str, JsonValue], instructions: str) -> Property:
    _require_only(name, schema, {"type", "minimum", "maximum"})
    least, most = _bound(name, schema, "minimum"), _bound(name, schema, "maximum")
    if most < least:
        raise SchemaError(name, f"maximum {most} is less than minimum {least}")
    if (count := most - least + 1) > MAX_LEVELS:
        raise SchemaError(name, f"has {count} levels, more than {MAX_LEVELS}")
    values = tuple(range(least, most + 1))
    if count == 1:
        return Property(None, values)
    return Property(ScoreQuestion(instructions, tuple(str(value) for value in values), values), values)


def _bound(name: str, schema: Mapping[str, JsonValue], which: str) -> int:
    value = schema.get(which)
    if which not in schema:
        raise SchemaError(name, f"needs a {which}: without it there are too many values")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1 != 0:
        raise SchemaError(name, f"{which} must be a whole number, not {wrong_kind(value)}")
    return int(value)


def _written(name: str, value: JsonValue) -> str:
    try:
        return encode(value).decode()
    except ValueError as err:
        raise SchemaError(name, f"a value {err}") from err


def _require_only(name: str, schema: Mapping[str, JsonValue], known: set[str]) -> None:
    for key in schema:
        if key not in known and key not in _ANNOTATIONS:
            raise SchemaError(name, f"keyword {quote(key)} is not supported here")
