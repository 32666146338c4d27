"""The calls that the common providers' interfaces write, as our envelope.

    {"type": "function", "id": …, "function": {"name": …, "arguments": "{…}"}}     OpenAI, chat completions
    {"type": "function_call", "call_id": …, "name": …, "arguments": "{…}"}         OpenAI, responses
    {"type": "tool_use", "id": …, "name": …, "input": {…}}                          Anthropic
    {"functionCall": {"name": …, "args": {…}}}                                      Google

Promise: a call is renamed and not read: what its tool and arguments are worth is for the gates. What is none of these
is left as it is. A call of `abstain` is the abstention that `tool_formats.py` offers beside the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ticketgate.codecs.values.strict import JsonValue, Malformed, decode

# The tool by which a proposer that must call something says that it makes no call.
ABSTAIN: Final = "abstain"


def as_envelope(document: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Our envelope of a provider's call; the document itself where it is no such call."""
    match document:
        case {"type": "function", "function": {"name": name, "arguments": arguments}}:
            return _envelope(document.get("id"), name, _object(arguments))
        case {"type": "function_call", "name": name, "arguments": arguments}:
            return _envelope(document.get("call_id"), name, _object(arguments))
        case {"type": "tool_use", "name": name, "input": arguments}:
            return _envelope(document.get("id"), name, arguments)
        case {"functionCall": {"id": call_id, "name": name, "args": arguments}}:
            return _envelope(call_id, name, arguments)
        case {"functionCall": {"name": name, "args": arguments}}:
            return _envelope(None, name, arguments)
        case _:
            return document


def _envelope(call_id: JsonValue, name: JsonValue, arguments: JsonValue) -> dict[str, JsonValue]:
    # Google's calls may have no id; the id is no part of what a call means.
    known_as = "-" if call_id is None else call_id
    if name == ABSTAIN and isinstance(arguments, dict) and arguments.keys() == {"reason"}:
        return {"call_id": known_as, "abstain": arguments["reason"]}
    return {"call_id": known_as, "tool": name, "arguments": arguments}


def _object(arguments: JsonValue) -> JsonValue:
    """Arguments that a provider writes as text; the text itself where it is no JSON, which `envelope` then names."""
    if not isinstance(arguments, str):
        return arguments
    value = decode(arguments.encode("utf-8", "surrogatepass"))
    return arguments if isinstance(value, Malformed) else value
