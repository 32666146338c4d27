"""Which characters can still lead to a call that a published catalogue admits.

Promise: an automaton is alive exactly on the prefixes of texts in its language, and accepts exactly what the funnel's
gates `parse` to `schema` let through, of texts without white space between tokens and without backslashes. Keys come
in any order and once. States are values; None is the dead state.
Limits: types that a JSON number or literal writes are not supported, and are refused when the automaton is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ticketgate.agents.funnel.case import ABSTENTION_REASONS

from .contents import Content, Day, Length, Money, OneOf, State, pence


class Machine(Protocol):
    """A language of characters. `step` from an alive state gives an alive state or None."""

    def start(self) -> State:
        """The state before the first character."""
        ...

    def step(self, state: State, character: str) -> State | None:
        """The state after one more character; None if no text of the language begins so."""
        ...

    def accepts(self, state: State) -> bool:
        """Whether what was read is a text of the language."""
        ...


class UnsupportedField(ValueError):
    """A published field that this automaton cannot express. Not retried: decoding without it would promise too much."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """A string between quotes, whose content a prefix check knows. States: `"` unread, the content, or closed."""

    content: Content

    def start(self) -> State:
        """Before the quote."""
        return ("before",)

    def step(self, state: State, character: str) -> State | None:
        """One character on."""
        if state[0] == "before":
            return ("in", self.content.nothing()) if character == '"' else None
        if state[0] == "closed":
            return None
        if character == '"':
            return ("closed",) if self.content.is_whole(state[1]) else None
        if character == "\\" or character < " ":
            return None
        more = self.content.add(state[1], character)
        return None if more is None else ("in", more)

    def accepts(self, state: State) -> bool:
        """Closed."""
        return bool(state[0] == "closed")


@dataclass(frozen=True, slots=True)
class Object:
    """An object of known members, each at most once and in any order, the required ones there."""

    members: Mapping[str, Machine]
    required: frozenset[str]

    def start(self) -> State:
        """Before the brace."""
        return ("before",)

    def step(self, state: State, character: str) -> State | None:  # noqa: C901 - a table, one row a state
        """One character on."""
        match state:
            case ("before",):
                return ("first", frozenset()) if character == "{" else None
            case ("first" | "next", seen):
                if character == '"' and self.members.keys() - seen:
                    return ("key", seen, "")
                return ("closed",) if character == "}" and self._may_close(state) else None
            case ("key", seen, read):
                if character == '"':
                    return ("colon", seen, read) if read in self.members.keys() - seen else None
                more = read + character
                goes_on = any(name.startswith(more) for name in self.members.keys() - seen)
                return ("key", seen, more) if goes_on else None
            case ("colon", seen, name):
                return ("value", seen, name, self.members[name].start()) if character == ":" else None
            case ("value", seen, name, inner):
                machine = self.members[name]
                after = machine.step(inner, character)
                if after is None:
                    return None
                if machine.accepts(after):
                    return ("after", seen | {name})
                return ("value", seen, name, after)
            case ("after", seen):
                if character == ",":
                    return ("next", seen) if self.members.keys() - seen else None
                return ("closed",) if character == "}" and self.required <= seen else None
            case _:
                return None

    def accepts(self, state: State) -> bool:
        """Closed."""
        return bool(state[0] == "closed")

    def _may_close(self, state: State) -> bool:
        return state[0] == "first" and not self.required


@dataclass(frozen=True, slots=True)
class Either:
    """The union of languages: all run side by side, and the dead fall out."""

    machines: tuple[Machine, ...]

    def start(self) -> State:
        """All of them."""
        return tuple((place, machine.start()) for place, machine in enumerate(self.machines))

    def step(self, state: State, character: str) -> State | None:
        """Those that go on."""
        after = tuple(
            (place, stepped)
            for place, inner in state
            if (stepped := self.machines[place].step(inner, character)) is not None
        )
        return after or None

    def accepts(self, state: State) -> bool:
        """Any of them."""
        return any(self.machines[place].accepts(inner) for place, inner in state)


def call_automaton(published: Mapping[str, Any], *, has_abstention: bool) -> Machine:
    """The language of calls of a published catalogue, and of typed abstentions if the schema has that branch.

    Raises UnsupportedField.
    """
    named = Quoted(Length(1, None))
    shapes: list[Machine] = [
        Object(
            {"call_id": named, "tool": Quoted(OneOf((name,))), "arguments": _arguments(tool["fields"])},
            frozenset({"call_id", "tool", "arguments"}),
        )
        for name, tool in published["tools"].items()
    ]
    if has_abstention:
        members: dict[str, Machine] = {"call_id": named, "abstain": Quoted(OneOf(ABSTENTION_REASONS))}
        shapes.append(Object(members, frozenset(members)))
    return Either(tuple(shapes))


def accepts(machine: Machine, text: str) -> bool:
    """Whether a text is of a machine's language."""
    state = run(machine, machine.start(), text)
    return state is not None and machine.accepts(state)


def run(machine: Machine, state: State | None, text: str) -> State | None:
    """The state after a text; None if dead."""
    for character in text:
        if state is None:
            return None
        state = machine.step(state, character)
    return state


def _arguments(fields: Mapping[str, Mapping[str, Any]]) -> Object:
    return Object(
        {name: Quoted(_content(name, spec)) for name, spec in fields.items()},
        frozenset(name for name, spec in fields.items() if spec["required"]),
    )


def _content(name: str, spec: Mapping[str, Any]) -> Content:
    kind = spec["type"]
    if kind in ("identifier", "text"):
        return Length(spec["min_length"], spec["max_length"])
    if kind == "choice":
        return OneOf(tuple(spec["one_of"]))
    if kind == "date":
        return Day()
    if kind == "money":
        least = -(10**17) if "at_least" not in spec else pence(spec["at_least"])
        if "above" in spec:
            least = max(least, pence(spec["above"]) + 1)
        return Money(least, pence(spec["at_most"]) if "at_most" in spec else None)
    raise UnsupportedField(f"{name}: no automaton for the type {kind}; use text, or write its machine")
