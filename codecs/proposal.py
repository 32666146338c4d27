"""Proposals: a call that a model proposes, beside the request that it is to serve (DESIGN section 7, `proposal/1`).

Promise: what comes out has exactly the fields below; every wrong one is named at once, those of the request too.
The call stays the text that the model wrote. Nothing here reads it: that is the funnel's first gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from ticketgate.codecs.malformed import Malformed, wrong_kind
from ticketgate.codecs.shape import wrong_fields
from ticketgate.codecs.strict import DEFAULT_MAX_BYTES, JsonValue, decode
from ticketgate.codecs.verdict import Stage
from ticketgate.codecs.versions import Versions
from typing_extensions import TypedDict

__all__ = [
    "PROPOSAL_SCHEMA",
    "Proposal",
    "ProposalDocument",
    "ProposerModel",
    "Request",
    "Scalar",
    "Signed",
    "decode_proposal",
    "read_proposal",
    "read_request",
]

# What a request binds a field to. Money and dates are text: a binary fraction is no amount.
Scalar = str | int | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for, as the application knows it; no model wrote any of it.

    operation: what is requested, as the catalogue's tools say that they serve it. actor_id, roles: who asks, as
    authenticated. version: counts up when the requester changes their mind. values: the facts by field.
    conditions: what must hold besides, by field. control: what the application binds, such as `idempotency_key`.
    """

    operation: str
    actor_id: str
    roles: tuple[str, ...] = ()
    purpose: str = ""
    phase: str = ""
    version: int = 1
    values: Mapping[str, Scalar] = field(default_factory=dict)
    conditions: Mapping[str, Scalar] = field(default_factory=dict)
    control: Mapping[str, Scalar] = field(default_factory=dict)

    def value(self, name: str) -> Scalar | None:
        """What the request binds a field to, whichever of the three tables it stands in; None if nothing."""
        for table in (self.values, self.conditions, self.control):
            if name in table:
                return table[name]
        return None

    def to_json(self) -> dict[str, JsonValue]:
        """The request as a JSON object, every field written."""
        return {
            "operation": self.operation,
            "actor_id": self.actor_id,
            "roles": list(self.roles),
            "purpose": self.purpose,
            "phase": self.phase,
            "version": self.version,
            "values": dict(self.values),
            "conditions": dict(self.conditions),
            "control": dict(self.control),
        }


@dataclass(frozen=True, slots=True)
class ProposerModel:
    """Which model proposed, as its proposer says: nothing is decided by it. An empty version: it names none."""

    id: str
    version: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The model as a JSON object; a version only if there is one."""
        return {"id": self.id, "version": self.version} if self.version else {"id": self.id}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """Evidence that came signed beside a proposal, as compact JWS texts. Nothing here trusts or checks them."""

    authority: str | None = None
    world: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """What there is as a JSON object."""
        given = {"authority": self.authority, "world": self.world}
        return {name: text for name, text in given.items() if text is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One attempt at one case. call: the model's text as it came. tenant, case id and attempt (from 1) identify it."""

    case_id: str
    attempt: int
    call: str
    request: Request
    tenant: str = ""
    model: ProposerModel | None = None
    signed: Signed = Signed()

    def to_json(self) -> dict[str, JsonValue]:
        """The proposal as a JSON object in the wire's field order; model and signed only if there are any."""
        record: dict[str, JsonValue] = {
            "schema": PROPOSAL_SCHEMA,
            "case_id": self.case_id,
            "attempt": self.attempt,
            "tenant": self.tenant,
            "call": self.call,
            "request": self.request.to_json(),
        }
        if self.model is not None:
            record["model"] = self.model.to_json()
        if self.signed != Signed():
            record["signed"] = self.signed.to_json()
        return record


_Table = dict[str, str | int | bool]
_Text = Annotated[str, Field(min_length=1, max_length=256)]
_Jws = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+$",
        max_length=65_536,
        description="a compact JWS",
    ),
]


@with_config(ConfigDict(extra="forbid", strict=True))
class RequestDocument(TypedDict):
    operation: _Text
    actor_id: _Text
    roles: NotRequired[list[str]]
    purpose: NotRequired[str]
    phase: NotRequired[str]
    version: NotRequired[Annotated[int, Field(ge=1)]]
    values: NotRequired[_Table]
    conditions: NotRequired[_Table]
    control: NotRequired[_Table]


@with_config(ConfigDict(extra="forbid", strict=True))
class ProposerModelDocument(TypedDict):
    id: _Text
    version: NotRequired[Annotated[str, Field(max_length=256)]]


@with_config(ConfigDict(extra="forbid", strict=True))
class SignedDocument(TypedDict):
    authority: NotRequired[_Jws]
    world: NotRequired[_Jws]


class _Envelope(TypedDict):
    schema: NotRequired[Literal["proposal/1"]]
    case_id: _Text
    attempt: Annotated[int, Field(ge=1, le=1_000_000)]
    tenant: NotRequired[str]
    call: Annotated[str, Field(description="the model's text as it came")]
    model: NotRequired[ProposerModelDocument]
    signed: NotRequired[SignedDocument]


@with_config(ConfigDict(extra="forbid", strict=True))
class _OuterDocument(_Envelope):
    # Read apart, so that all its wrong fields are named.
    request: dict[str, Any]


@with_config(ConfigDict(extra="forbid", strict=True, title="proposal/1"))
class ProposalDocument(_Envelope):
    """A proposal on the wire. Unknown fields are refused at every level."""

    request: RequestDocument


_SCALARS = "an object of texts, whole numbers, true or false"
_REQUEST_HINTS = {
    "operation": "text of 1 to 256 characters",
    "actor_id": "text of 1 to 256 characters",
    "roles": "an array of texts",
    "purpose": "text",
    "phase": "text",
    "version": "a whole number from 1",
    "values": _SCALARS,
    "conditions": _SCALARS,
    "control": _SCALARS,
}
_HINTS = {
    "schema": '"proposal/1" where it stands',
    "case_id": "text of 1 to 256 characters",
    "attempt": "a whole number from 1 to 1000000",
    "tenant": "text",
    "call": "the model's call as text",
    "request": "an object",
    "model": "an object with the proposing model's id and perhaps its version, texts of at most 256 characters",
    "signed": "an object of compact JWS texts, authority and world",
}


@cache
def _proposal_check() -> TypeAdapter[_OuterDocument]:
    """Built at first use, as `codecs.ticket` says."""
    return TypeAdapter(_OuterDocument)


@cache
def _request_check() -> TypeAdapter[RequestDocument]:
    return TypeAdapter(RequestDocument)


def _read_version_1(record: dict[str, JsonValue]) -> Proposal | Malformed:
    faults: list[Malformed] = []
    checked: _OuterDocument | None = None
    try:
        checked = _proposal_check().validate_python(record)
    except ValidationError as err:
        faults.append(wrong_fields(err, record, _HINTS, unknown="not one of proposal/1"))
    request = read_request(record["request"]) if isinstance(record.get("request"), dict) else None
    if isinstance(request, Malformed):
        faults.append(Malformed(request.stage, request.code, f'in "request": {request.reason}'))
    if checked is None or not isinstance(request, Request):
        return Malformed(Stage.SCHEMA, faults[0].code, "; ".join(fault.reason for fault in faults))
    return Proposal(
        case_id=checked["case_id"],
        attempt=checked["attempt"],
        call=checked["call"],
        request=request,
        tenant=checked.get("tenant", ""),
        model=ProposerModel(**checked["model"]) if "model" in checked else None,
        signed=Signed(**checked.get("signed", {})),
    )


def read_request(value: JsonValue) -> Request | Malformed:
    """The request that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a request is a JSON object, not {wrong_kind(value)}"
        )
    try:
        checked = _request_check().validate_python(value)
    except ValidationError as err:
        return wrong_fields(err, value, _REQUEST_HINTS, unknown="not one of a request's")
    values, conditions = checked.get("values", {}), checked.get("conditions", {})
    control = checked.get("control", {})
    twice = sorted(
        values.keys() & conditions.keys()
        | values.keys() & control.keys()
        | conditions.keys() & control.keys()
    )
    if twice:
        return Malformed(
            Stage.SCHEMA,
            "contradiction",
            f"bound in more than one of values, conditions and control: {', '.join(twice)}",
        )
    return Request(
        operation=checked["operation"],
        actor_id=checked["actor_id"],
        roles=tuple(checked.get("roles", ())),
        purpose=checked.get("purpose", ""),
        phase=checked.get("phase", ""),
        version=checked.get("version", 1),
        values=values,
        conditions=conditions,
        control=control,
    )


_VERSIONS: Versions[Proposal] = Versions("proposal", {1: _read_version_1})

PROPOSAL_SCHEMA = _VERSIONS.current


def read_proposal(value: JsonValue) -> Proposal | Malformed:
    """The proposal that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a proposal is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)


def decode_proposal(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Proposal | Malformed:
    """The proposal that a record's value is: bytes and shape judged as one total function."""
    value = decode(data, max_bytes=max_bytes)
    return value if isinstance(value, Malformed) else read_proposal(value)
