"""JSON's grammar alone, as an automaton with a stack: an object of anything.

Promise: it accepts exactly the JSON objects (RFC 8259), of texts without white space between tokens and without
backslashes. That a key stands twice is no matter of the grammar, and is let through here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .contents import State

_LITERALS = ("true", "false", "null")
# A number by what it has so far, and what may follow: `-`, `0`, digits, point, places, exponent, its sign, its digits.
_NUMBER: dict[str, dict[str, str]] = {
    "minus": {"0": "zero", "1-9": "whole"},
    "zero": {".": "point", "e": "e"},
    "whole": {"0": "whole", "1-9": "whole", ".": "point", "e": "e"},
    "point": {"0": "places", "1-9": "places"},
    "places": {"0": "places", "1-9": "places", "e": "e"},
    "e": {"-": "sign", "+": "sign", "0": "power", "1-9": "power"},
    "sign": {"0": "power", "1-9": "power"},
    "power": {"0": "power", "1-9": "power"},
}
_WHOLE_NUMBERS = ("zero", "whole", "places", "power")


@dataclass(frozen=True, slots=True)
class AnyObject:
    """States: what is being read, how far, and the open brackets from outside in."""

    def start(self) -> State:
        """Before the brace."""
        return ("start", "", "")

    def step(self, state: State, character: str) -> State | None:  # noqa: C901 - a table, one row a state
        """One character on."""
        what, read, stack = state
        match what:
            case "start":
                return ("first_key", "", "{") if character == "{" else None
            case "first_key" | "key":
                if character == '"':
                    return ("in_key", "", stack)
                return _close(stack) if what == "first_key" and character == "}" else None
            case "in_key":
                return _in_string(state, character, ("colon", "", stack))
            case "colon":
                return ("value", "", stack) if character == ":" else None
            case "first_item":
                return _close(stack) if character == "]" else _value(stack, character)
            case "value":
                return _value(stack, character)
            case "in_string":
                return _in_string(state, character, ("after", "", stack))
            case "literal":
                more = read + character
                if more in _LITERALS:
                    return ("after", "", stack)
                return ("literal", more, stack) if any(each.startswith(more) for each in _LITERALS) else None
            case "number":
                after = _NUMBER[read].get(_class(character))
                if after is not None:
                    return ("number", after, stack)
                return _after(stack, character) if read in _WHOLE_NUMBERS else None
            case "after":
                return _after(stack, character)
            case _:
                return None

    def accepts(self, state: State) -> bool:
        """All closed."""
        return bool(state[0] == "end")


def _in_string(state: State, character: str, after: State) -> State | None:
    if character == '"':
        return after
    return None if character == "\\" or character < " " else state


def _value(stack: str, character: str) -> State | None:
    if character == '"':
        return ("in_string", "", stack)
    if character == "{":
        return ("first_key", "", stack + "{")
    if character == "[":
        return ("first_item", "", stack + "[")
    if character in "tfn":
        return ("literal", character, stack)
    begun = {"-": "minus", "0": "zero", "1-9": "whole"}.get(_class(character))
    return None if begun is None else ("number", begun, stack)


def _after(stack: str, character: str) -> State | None:
    if character == ",":
        return ("key" if stack[-1] == "{" else "value", "", stack)
    return _close(stack) if character == ("}" if stack[-1] == "{" else "]") else None


def _close(stack: str) -> State:
    return ("after", "", stack[:-1]) if len(stack) > 1 else ("end", "", "")


def _class(character: str) -> str:
    if character in "123456789":
        return "1-9"
    return "e" if character == "E" else character
