"""What a catalogue that loads may still get wrong: names that hide, purposes that blur, fields without cases.

Promise: each finding names its line's place, what a proposer would make of it, and the remedy. None changes a verdict.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from ticketgate.agents.funnel.catalogue import Catalogue, FieldSpec, Tool
from ticketgate.agents.funnel.values import is_of_type, minor_units
from ticketgate.codecs.values.strict import JsonValue

# Verbs that name no consequence: a proposer takes such a tool for whatever is asked.
VAGUE_VERBS = frozenset({"manage", "handle", "process", "do", "perform", "execute", "update", "run"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: a stable code, the place as dotted names, what is wrong, the remedy."""

    code: str
    place: str
    what: str
    remedy: str

    def to_json(self) -> dict[str, JsonValue]:
        """The finding for programs."""
        return {"code": self.code, "place": self.place, "what": self.what, "remedy": self.remedy}


def lint_catalogue(catalogue: Catalogue) -> tuple[Finding, ...]:
    """Every finding, tools and fields in the catalogue's order, pairs of tools last."""
    return (
        *(found for name, tool in catalogue.tools.items() for found in _of_tool(name, tool)),
        *(
            found
            for (name, tool), (other_name, other) in combinations(catalogue.tools.items(), 2)
            for found in _of_pair(name, tool, other_name, other)
        ),
    )


def _of_tool(name: str, tool: Tool) -> Iterator[Finding]:
    words = _words(name)
    # Most of these are nouns too, as in schedule_run; manage is none, wherever it stands.
    if words[0] in VAGUE_VERBS or "manage" in words:
        verb = words[0] if words[0] in VAGUE_VERBS else "manage"
        what = f'"{verb}" names no consequence'
        yield Finding(
            "vague_name", name, what, "begin with the verb of what happens, such as schedule or refund"
        )
    if tool.is_effect and not tool.preconditions:
        what = "an effect without preconditions"
        yield Finding("no_precondition", name, what, "say what must hold in the world before it may happen")
    if tool.is_effect and tool.states is None:
        what = "no states: one that is cancelled after it was made would be taken for done"
        remedy = 'say which observed states stand: states = { done = ["scheduled"], undone = ["cancelled"] }'
        yield Finding("no_states", name, what, remedy)
    for field_name, spec in tool.fields.items():
        yield from _of_field(f"{name}.{field_name}", spec)


def _of_field(place: str, spec: FieldSpec) -> Iterator[Finding]:
    # More than a word describes a unit, such as that another field says it.
    is_code = spec.unit is not None and len(spec.unit.split()) == 1
    if spec.type == "money" and spec.unit is not None and is_code and minor_units(spec.unit) is None:
        meant = spec.unit.strip().upper()
        what = f'"{spec.unit}" is no ISO 4217 currency with minor units, so its amounts have two places'
        remedy = f'write unit = "{meant if minor_units(meant) is not None else "EUR"}", by the code of its currency'
        yield Finding("unknown_currency", place, what, remedy)
    if spec.type == "money" and spec.above is None and spec.at_least is None:
        what = "money without a lower bound: -600.00 is well formed"
        yield Finding("no_lower_bound", place, what, 'add above = "0", or at_least where 0 or less is meant')
    if spec.cases is None:
        remedy = "add cases = { admissible = …, wrong = …, unclear = … }"
        yield Finding("no_cases", place, "no three cases say what it means", remedy)
        return
    for case in ("admissible", "wrong"):
        given = getattr(spec.cases, case)
        try:
            if not is_of_type(spec.type, given):
                raise ValueError(f"not of the type {spec.type}")
            spec.read(given)
        except ValueError as err:
            remedy = "write a value that the schema lets through; being wrong is a matter of meaning"
            yield Finding("case_not_well_formed", f"{place}.cases.{case}", str(err), remedy)
            return
    if spec.read(spec.cases.admissible) == spec.read(spec.cases.wrong):
        what = "the wrong case means the same as the admissible one"
        yield Finding("cases_alike", f"{place}.cases", what, "write another value as wrong")
    if not spec.cases.unclear.strip():
        what = "no case in which the truth is missing or uncertain"
        yield Finding("no_unclear_case", f"{place}.cases", what, "quote a request that leaves it open")


def _of_pair(name: str, tool: Tool, other_name: str, other: Tool) -> Iterator[Finding]:
    place = f"{name}, {other_name}"
    if sorted(_words(name)) == sorted(_words(other_name)):
        what = "two names of the same words"
        yield Finding("two_names", place, what, "keep one, or say in the names how they differ")
    elif tool.serves == other.serves and tool.kind == other.kind and set(tool.fields) == set(other.fields):
        what = f"two names for one thing: both serve {tool.serves} with the same fields"
        yield Finding("two_names", place, what, "keep one")
    if tool.purpose.casefold().strip(" .") == other.purpose.casefold().strip(" ."):
        what = "the same purpose twice"
        yield Finding("same_purpose", place, what, "say of each what the other does not do")


def _words(name: str) -> list[str]:
    """The words of a name, whichever way they are joined: refund_order, refundOrder, Refund-Order."""
    return [word.casefold() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)] or [name]
