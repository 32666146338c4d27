"""What the toy model is told beside the request: tools, whether it may abstain, and what a repair asks of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Told:
    """One tool as the prompt describes it."""

    name: str
    purpose: str
    does_not: str
    fields: tuple[str, ...]
    kinds: Mapping[str, str]
    required: frozenset[str]


@dataclass(frozen=True, slots=True)
class Prompt:
    """errors: compact, machine-readable, of the answer before. anchors: authoritative values that a repair names.
    kept: the answer before, which a repair asks to leave as it is: its tool under `tool`, its arguments by field."""

    tools: Mapping[str, Told]
    has_abstention: bool = False
    errors: tuple[str, ...] = ()
    anchors: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> int:
        """About how long it is: names and descriptions of tools and fields, errors and anchors."""
        tools = sum(
            2 + len(f"{tool.purpose} {tool.does_not}".split()) + 4 * len(tool.fields)
            for tool in self.tools.values()
        )
        return 30 + tools + 3 * (len(self.errors) + len(self.anchors)) + 2 * len(self.kept)


def prompt_for(published: Mapping[str, Any], *, has_abstention: bool) -> Prompt:
    """The prompt for a published catalogue."""
    return Prompt(
        {
            name: Told(
                name,
                tool["purpose"],
                tool["does_not"],
                tuple(tool["fields"]),
                {each: spec["type"] for each, spec in tool["fields"].items()},
                frozenset(each for each, spec in tool["fields"].items() if spec["required"]),
            )
            for name, tool in published["tools"].items()
        },
        has_abstention,
    )
