"""One proposed call on its way through the gates: what is given, and what follows from it.

Promise: everything here follows from the proposal, the catalogue and the evidence alone, each thing once. A gate
reads only what the gates before it have seen to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, Literal, get_args

from ticketgate.agents.funnel.call_text import Written, read_text
from ticketgate.agents.funnel.catalogue import Catalogue, Compiled, FieldSpec, Tool, compile_catalogue
from ticketgate.agents.funnel.evidence import Authority, World
from ticketgate.agents.funnel.provider_calls import as_envelope
from ticketgate.agents.funnel.values import Value, plain
from ticketgate.codecs.records.proposal import Proposal, Request
from ticketgate.codecs.values.strict import JsonValue, Malformed

# The control that is the effect's key, where the application binds one.
KEY_FIELD: Final = "idempotency_key"

# Why a proposer makes no call. Each is an outcome; the first is right where no tool serves the request.
AbstentionReason = Literal["unsupported_operation", "missing_information", "ambiguous_request"]
ABSTENTION_REASONS: tuple[str, ...] = get_args(AbstentionReason)


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose envelope is right: a description of an operation, and no permission."""

    call_id: str
    tool: str
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Abstention:
    """The proposer says that it makes no call, and why."""

    call_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokenEnvelope:
    """What is wrong with the envelope: missing, then extra, then wrong_type, each sorted."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An authoritative value that its own field does not admit: the application's fault, not the model's."""

    why: str


@dataclass(frozen=True)  # no slots: cached_property keeps its results in __dict__
class FunnelCase:
    """A proposal under a catalogue, with the evidence as it was looked up. `at`: the moment that is judged for.

    unreadable: `authority:why` or `world:why`, what was looked up and is no evidence (evidence.py). confirmed_by: the
    digest of the only confirmation that counts, empty if none does; None: any.
    """

    proposal: Proposal
    catalogue: Catalogue
    authority: Authority | None
    world: World
    at: datetime
    unreadable: tuple[str, ...] = ()
    confirmed_by: str | None = None

    @property
    def request(self) -> Request:
        """The authoritative request."""
        return self.proposal.request

    @cached_property
    def compiled(self) -> Compiled:
        """What of the catalogue is offered for this request."""
        return compile_catalogue(self.catalogue, self.request, self.world.facts)

    @property
    def is_world_unreadable(self) -> bool:
        """Whether the facts are missing because nobody could read them, so that their absence says nothing."""
        return any(not each.startswith("authority:") for each in self.unreadable)

    @cached_property
    def written(self) -> Written:
        """What the model's text says, and whether its syntax was mended here."""
        return read_text(self.proposal.call, may_mend=self.catalogue.mends_syntax)

    @property
    def document(self) -> JsonValue | Malformed:
        """The model's text as a JSON value, read as strictly as a record."""
        return self.written.document

    @cached_property
    def envelope(self) -> Call | Abstention | BrokenEnvelope:
        """The call's envelope."""
        return read_envelope(self.document if isinstance(self.document, dict) else {})

    @property
    def call(self) -> Call:
        """The call, for gates behind `envelope` and `abstention`."""
        if not isinstance(self.envelope, Call):
            raise TypeError("there is no call; the gates before this one stop such a case")
        return self.envelope

    @property
    def tool(self) -> Tool:
        """The proposed tool, for gates behind `tool_catalogue`."""
        return self.compiled.tools[self.call.tool]

    @cached_property
    def given(self) -> Mapping[str, JsonValue]:
        """The call's arguments, for gates behind `tool_catalogue`. Null stands for the absence of a field that may be
        absent, as serialisers write one that is not set."""
        fields = self.tool.fields
        return {
            name: value
            for name, value in self.call.arguments.items()
            if value is not None or name not in fields or fields[name].is_asked_for
        }

    @cached_property
    def arguments(self) -> Mapping[str, Value]:
        """The call's arguments as values, in the catalogue's order, for gates behind `schema`."""
        return {
            name: spec.read(self.given[name]) for name, spec in self.tool.fields.items() if name in self.given
        }

    @cached_property
    def bound(self) -> Mapping[str, Value | Unreadable | None]:
        """What the request binds each compared field to, in the catalogue's order; None if to nothing."""
        return {
            name: _bound(self.request, name, spec)
            for name, spec in self.tool.fields.items()
            if spec.role != "interpretation"
        }

    @cached_property
    def command(self) -> Mapping[str, Value]:
        """What would be carried out: the request's values where it binds them, the model's where it interprets.

        For gates behind `semantics`. Controls are not in it: they belong to the command, not to its meaning.
        """
        command: dict[str, Value] = {}
        for name, spec in self.tool.fields.items():
            value = self.arguments.get(name) if spec.role == "interpretation" else self.bound[name]
            if spec.role != "control" and value is not None and not isinstance(value, Unreadable):
                command[name] = value
        return command


# Which fields an envelope has, and of which types.
_CALL: Mapping[str, type] = {"call_id": str, "tool": str, "arguments": dict}
_ABSTENTION: Mapping[str, type] = {"call_id": str, "abstain": str}


def read_envelope(document: Mapping[str, JsonValue]) -> Call | Abstention | BrokenEnvelope:
    """The call or the abstention that an object is, or what is wrong with its envelope. A provider's own call object
    is taken for the call that it describes."""
    document = as_envelope(document)
    shape = _ABSTENTION if "abstain" in document else _CALL
    missing = sorted(shape.keys() - document.keys())
    extra = sorted(document.keys() - shape.keys())
    wrong = sorted(
        name
        for name, kind in shape.items()
        if name in document and (not isinstance(document[name], kind) or document[name] == "")
    )
    reasons = shape_reasons(missing, extra, wrong)
    call_id, tool, arguments = document.get("call_id"), document.get("tool"), document.get("arguments")
    if not reasons and isinstance(call_id, str):
        if isinstance(tool, str) and isinstance(arguments, dict):
            return Call(call_id, tool, arguments)
        if (abstained := document.get("abstain")) in ABSTENTION_REASONS:
            return Abstention(call_id, str(abstained))
        reasons = (f"unknown_abstention:one of {', '.join(ABSTENTION_REASONS)}",)
    return BrokenEnvelope(reasons)


def shape_reasons(missing: list[str], extra: list[str], wrong: list[str]) -> tuple[str, ...]:
    """The grammar of reasons about shape: missing, then extra, then wrong_type, each given sorted, all collected."""
    return tuple(
        f"{fault}:{plain(name)}"
        for fault, names in (("missing", missing), ("extra", extra), ("wrong_type", wrong))
        for name in names
    )


def _bound(request: Request, name: str, spec: FieldSpec) -> Value | Unreadable | None:
    given = request.value(name)
    if given is None:
        return None
    try:
        return spec.read(given)
    except ValueError as err:
        return Unreadable(str(err))
