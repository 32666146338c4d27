"""The offered catalogue as the field writes it: one JSON Schema, or the tool formats of the common providers.

Promise: made from what is compiled for a request, with its hash, so that a constrained decoder can write exactly the
calls that the gates `envelope`, `tool_catalogue` and `schema` let through, and an abstention. Controls are left out:
they are the application's, and no call has to carry them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

from ticketgate.agents.funnel.case import ABSTENTION_REASONS
from ticketgate.agents.funnel.catalogue import Compiled, FieldSpec, Tool
from ticketgate.agents.funnel.provider_calls import ABSTAIN
from ticketgate.codecs.values.strict import JsonValue

Format = Literal["json-schema", "openai", "anthropic", "google"]
FORMATS: tuple[Format, ...] = get_args(Format)

_SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"
# What every provider admits as a tool's name.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_MONEY: Final = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,2})?$"


class NotOffered(ValueError):
    """The catalogue cannot be written so: why, and the way out."""


def written_as(compiled: Compiled, form: Format) -> dict[str, JsonValue]:
    """`{catalogue, format, tools}`, or `schema` in the place of tools. Raises NotOffered."""
    if ABSTAIN in compiled.tools:
        raise NotOffered(
            f'the catalogue has a tool "{ABSTAIN}", by which proposers say that they call none; rename it'
        )
    head: dict[str, JsonValue] = {"catalogue": compiled.ref.to_json(), "format": form}
    if form == "json-schema":
        return {**head, "schema": _call_schema(compiled)}
    for name in compiled.tools:
        if _NAME.fullmatch(name) is None:
            raise NotOffered(
                f'no provider takes "{name}" for a name; use letters, digits, _ and - in tool names'
            )
    tools = {name: (_told(tool), arguments_schema(tool)) for name, tool in compiled.tools.items()}
    tools[ABSTAIN] = (
        "Makes no call, and says why: no tool serves the request, something is missing, or the request is ambiguous",
        _object({"reason": {"type": "string", "enum": [*ABSTENTION_REASONS]}}, ["reason"]),
    )
    make = _FORMS[form]
    every: list[JsonValue] = [make(name, told, schema) for name, (told, schema) in tools.items()]
    tools_of: JsonValue = [{"functionDeclarations": every}] if form == "google" else every
    return {**head, "tools": tools_of}


def arguments_schema(tool: Tool) -> dict[str, JsonValue]:
    """The JSON Schema of a call's arguments."""
    specs = {name: spec for name, spec in tool.fields.items() if spec.role != "control"}
    return _object(
        {name: field_schema(spec) for name, spec in specs.items()},
        [name for name, spec in specs.items() if spec.is_asked_for],
    )


def field_schema(spec: FieldSpec) -> dict[str, JsonValue]:
    """The JSON Schema of one field. Of money, which is text, bounds are said in words alone."""
    said = [spec.says] if spec.says else []
    schema: dict[str, JsonValue]
    match spec.type:
        case "money":
            schema = {"type": "string", "pattern": _MONEY}
            said += [f"an amount in {spec.unit}, as decimal text with at most two places"]
            said += [f"{word} {bound}" for word, bound in _bounds(spec).items()]
        case "date":
            schema = {"type": "string", "format": "date"}
        case "integer":
            schema = {"type": "integer"}
            names = {"above": "exclusiveMinimum", "at least": "minimum", "at most": "maximum"}
            schema |= {names[word]: bound for word, bound in _bounds(spec).items()}
        case "boolean":
            schema = {"type": "boolean"}
        case "choice":
            schema = {"type": "string", "enum": list(spec.one_of)}
        case _:
            schema = {"type": "string", "minLength": spec.min_length, "maxLength": spec.max_length}
    return schema | ({"description": "; ".join(said)} if said else {})


def _bounds(spec: FieldSpec) -> dict[str, str | int]:
    every = {"above": spec.above, "at least": spec.at_least, "at most": spec.at_most}
    return {word: bound for word, bound in every.items() if bound is not None}


def _call_schema(compiled: Compiled) -> dict[str, JsonValue]:
    call_id: JsonValue = {"type": "string", "minLength": 1}
    calls: list[JsonValue] = [
        _object(
            {
                "call_id": call_id,
                "tool": {"const": name, "description": _told(tool)},
                "arguments": arguments_schema(tool),
            },
            ["call_id", "tool", "arguments"],
        )
        for name, tool in compiled.tools.items()
    ]
    calls.append(
        _object({"call_id": call_id, "abstain": {"enum": [*ABSTENTION_REASONS]}}, ["call_id", "abstain"])
    )
    return {"$schema": _SCHEMA, "anyOf": calls}


def _told(tool: Tool) -> str:
    kind = "changes the world" if tool.is_effect else "only observes"
    needs = [each.says for each in tool.preconditions] + (
        ["a person's confirmation"] if tool.confirmation else []
    )
    return f"{tool.purpose}. It {kind}, and does not {tool.does_not}." + (
        f" Needs: {'; '.join(needs)}." if needs else ""
    )


def _openai(name: str, told: str, schema: dict[str, JsonValue]) -> JsonValue:
    properties, required = schema["properties"], schema["required"]
    # Strict mode wants every property required.
    is_strict = (
        isinstance(properties, dict) and isinstance(required, list) and len(properties) == len(required)
    )
    function: dict[str, JsonValue] = {
        "name": name,
        "description": told,
        "parameters": schema,
        "strict": is_strict,
    }
    return {"type": "function", "function": function}


def _anthropic(name: str, told: str, schema: dict[str, JsonValue]) -> JsonValue:
    return {"name": name, "description": told, "input_schema": schema}


def _google(name: str, told: str, schema: dict[str, JsonValue]) -> JsonValue:
    return {"name": name, "description": told, "parametersJsonSchema": schema}


_FORMS: Mapping[str, Callable[[str, str, dict[str, JsonValue]], JsonValue]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google": _google,
}


def _object(properties: dict[str, JsonValue], required: list[str]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }
