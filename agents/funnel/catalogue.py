"""Catalogues: which calls may be proposed, what each does and does not do, and what its fields mean.

Promise: a catalogue is data, whole and checked. Every field has a type, a role, a source and someone who may set it;
what a model may set is never a control. `compile_catalogue` gives what one request may see of it, with a hash.
Narrowing is not authority: a tool that is offered may still be denied.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict
from pydantic import Field as Bounds
from ticketgate.agents.effects.states import States
from ticketgate.agents.funnel.results import ResultSpec
from ticketgate.agents.funnel.values import (
    USUAL_PLACES,
    Kind,
    Value,
    is_of_type,
    minor_units,
    read_money,
    read_value,
)
from ticketgate.codecs.records.proposal import Request, Scalar
from ticketgate.codecs.records.receipt import CatalogueRef
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.strict import JsonValue, canonical
from ticketgate.codecs.values.texts import alike, are_same, spelled

# fact: has an authority and is compared with it. interpretation: the model's reading, which nothing compares.
# control: bound by the application; a call may repeat it, and is then compared, but never sets it.
Role = Literal["fact", "interpretation", "control"]

_STRICT = ConfigDict(extra="forbid")
_Name = Annotated[str, Bounds(min_length=1, max_length=256, pattern=r"\S")]
# Reasons divide by colons and commas, and receipts keep `/` for what is no field.
_Id = Annotated[str, Bounds(max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]


@dataclass(frozen=True, slots=True)
class FieldCases:
    """Three cases that say what a field means: an admissible value, one well formed but wrong, and a request in
    which the truth is missing or uncertain, in words."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    admissible: Scalar
    wrong: Scalar
    unclear: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """One argument of a tool.

    source: where its authoritative value comes from. set_by: who may set it. unit: of money, such as GBP.
    required: whether a call must carry it; a control never has to. above, at_least, at_most: of money as decimal
    text, of integers as integers. one_of: of a choice, its values.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    type: Kind
    role: Role
    source: Literal["request", "identity", "lookup", "event", "model"]
    set_by: Literal["requester", "application", "model"]
    required: bool = True
    says: str = ""
    unit: str | None = None
    above: str | int | None = None
    at_least: str | int | None = None
    at_most: str | int | None = None
    min_length: Annotated[int, Bounds(ge=0)] = 1
    max_length: Annotated[int, Bounds(ge=1)] = 256
    one_of: tuple[str, ...] = ()
    cases: FieldCases | None = None

    @property
    def is_asked_for(self) -> bool:
        """Whether a call that lacks the field is incomplete."""
        return self.required and self.role != "control"

    def read(self, given: JsonValue) -> Value:
        """The value that `given` writes, within the constraints. Raises ValueError that says what is wrong."""
        value = read_value(self.type, given, unit=self.unit)
        if isinstance(value, str):
            if not self.min_length <= len(value) <= self.max_length:
                raise ValueError(
                    f"must have {self.min_length} to {self.max_length} characters, not {len(value)}"
                )
            if self.type == "choice":
                chosen = spelled(value, self.one_of)
                if chosen is None:
                    twin = alike(value, self.one_of)
                    raise ValueError(f"must be one of {', '.join(self.one_of)}, not {quote(value)}{twin}")
                value = chosen
        elif isinstance(value, Decimal | int) and not isinstance(value, bool):
            self._check_range(value)
        return value

    def _check_range(self, value: Decimal | int) -> None:
        if self.above is not None and not value > self._bound(self.above):
            raise ValueError(f"must be above {self.above}, not {value}")
        if self.at_least is not None and not value >= self._bound(self.at_least):
            raise ValueError(f"must be at least {self.at_least}, not {value}")
        if self.at_most is not None and not value <= self._bound(self.at_most):
            raise ValueError(f"must be at most {self.at_most}, not {value}")

    def _bound(self, bound: str | int) -> Decimal | int:
        return read_money(bound, self.unit) if isinstance(bound, str) else bound

    def published(self) -> dict[str, JsonValue]:
        """What a proposer is told of the field."""
        told: dict[str, JsonValue] = {
            "type": self.type,
            "required": self.is_asked_for,
            "role": self.role,
            "source": self.source,
            "set_by": self.set_by,
        }
        for name in ("says", "unit", "above", "at_least", "at_most"):
            if (value := getattr(self, name)) not in (None, ""):
                told[name] = value
        places = minor_units(self.unit) if self.type == "money" else None
        if places is not None and places != USUAL_PLACES:
            told["places"] = places
        if self.one_of:
            told["one_of"] = list(self.one_of)
        if is_of_type(self.type, ""):
            told |= {"min_length": self.min_length, "max_length": self.max_length}
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """What must hold in the world. `fact` names what is looked up; one of two forms:

    holds: the fact is one of `is_one_of`. keeps: the fact less the field `less` is not below the field `floor`;
    reasons call what would remain `name`. Without a floor in the request there is nothing to keep.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    says: _Name
    name: _Name
    fact: _Name
    is_one_of: tuple[Scalar, ...] = ()
    less: str | None = None
    floor: str | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """A money field that may not exceed the actor's limit of that name; `reason` begins the denial."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    field: _Name
    limit: _Name
    reason: _Name = "amount_exceeds_limit"


@dataclass(frozen=True, slots=True)
class ConfirmationRule:
    """An effect that a person must have confirmed: the fields that the confirmation binds, and how long it holds."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    binds: Annotated[tuple[str, ...], Bounds(min_length=1)]
    max_age_s: Annotated[int, Bounds(ge=1)]


@dataclass(frozen=True, slots=True)
class Offered:
    """To whom and when a tool is shown. What is empty restricts nothing. `facts`: of the world, by name."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    roles: tuple[str, ...] = ()
    purposes: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    facts: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)

    def admits(self, request: Request, facts: Mapping[str, Scalar]) -> bool:
        """Whether the tool is shown for this request in this state of the world."""
        return (
            (not self.roles or not set(self.roles).isdisjoint(request.roles))
            and (not self.purposes or request.purpose in self.purposes)
            and (not self.phases or request.phase in self.phases)
            and all(name in facts and is_among(facts[name], allowed) for name, allowed in self.facts.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One named operation. kind: whether it observes or effects. serves: the requested operation that it is for.
    states: which observed states of its effect stand. channels: those that it may be asked for through; none restrict
    nothing. results: what an observation brings."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    purpose: _Name
    kind: Literal["observes", "effects"]
    serves: _Name
    does_not: _Name
    preconditions: tuple[Precondition, ...]
    fields: Annotated[Mapping[_Id, FieldSpec], Bounds(min_length=1)]
    limits: tuple[Limit, ...] = ()
    confirmation: ConfirmationRule | None = None
    states: States | None = None
    channels: tuple[_Name, ...] = ()
    results: Mapping[_Id, ResultSpec] = field(default_factory=dict)
    offered: Offered = Offered()

    @property
    def is_effect(self) -> bool:
        """Whether calling it changes the world."""
        return self.kind == "effects"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A whole catalogue. Tools by name; the hash is of what each request is shown, so it is `Compiled`'s. mends_syntax:
    whether a call of which only the JSON syntax is broken is mended here before the proposer is asked."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: _Name
    version: _Name
    tools: Annotated[Mapping[_Id, Tool], Bounds(min_length=1)]
    mends_syntax: bool = False

    @property
    def states(self) -> Mapping[str, States]:
        """By tool, which observed states of its effect stand, where that is declared."""
        return {name: tool.states for name, tool in self.tools.items() if tool.states is not None}


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one request may see of a catalogue, as it is published to a proposer, with its hash."""

    ref: CatalogueRef
    tools: Mapping[str, Tool]
    published: Mapping[str, JsonValue]


def compile_catalogue(catalogue: Catalogue, request: Request, facts: Mapping[str, Scalar]) -> Compiled:
    """The tools that are shown for this request, by its roles, purpose and phase and by the world's facts.

    Not by the requested operation: a quote is asked for beside the tool that would schedule, as in production,
    and a proposer that takes the wrong one is found out at `tool_selection`.
    """
    tools = {
        name: tool for name, tool in sorted(catalogue.tools.items()) if tool.offered.admits(request, facts)
    }
    told: dict[str, JsonValue] = {
        "name": catalogue.name,
        "version": catalogue.version,
        "tools": {name: _published(tool) for name, tool in tools.items()},
    }
    digest = hashlib.sha256(canonical(told)).hexdigest()
    return Compiled(CatalogueRef(catalogue.name, catalogue.version, digest), tools, told | {"hash": digest})


def is_among(value: Scalar, allowed: tuple[Scalar, ...]) -> bool:
    """Whether a value stands in a list, type and all: true is not 1; texts by how they read."""
    return any(are_same(value, each) for each in allowed)


def _published(tool: Tool) -> dict[str, JsonValue]:
    return {
        "purpose": tool.purpose,
        "kind": tool.kind,
        "serves": tool.serves,
        "does_not": tool.does_not,
        "preconditions": [each.says for each in tool.preconditions],
        "needs_confirmation": tool.confirmation is not None,
        "fields": {name: spec.published() for name, spec in tool.fields.items()},
    }
