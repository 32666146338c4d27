"""Proposals: a call that a model proposes, beside the request that it is to serve (`proposal/1`).

Promise: what comes out has exactly the fields below; every wrong one is named at once, those of the request too.
The call stays the text that the model wrote. Nothing here reads it: that is the funnel's first gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from ticketgate.codecs.records.request import Request, RequestDocument, Scalar, read_request
from ticketgate.codecs.records.signed import (
    UNSIGNED,
    Signed,
    SignedDocument,
    WrittenSignedDocument,
    read_signed,
)
from ticketgate.codecs.values.malformed import Malformed, wrong_kind
from ticketgate.codecs.values.shape import (
    FORBID_UNKNOWN,
    IGNORE_UNKNOWN,
    few_unknown,
    without_nulls,
    wrong_fields,
)
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, JsonValue, decode
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage
from typing_extensions import TypedDict

__all__ = [
    "PROPOSAL_SCHEMA",
    "UNSIGNED",
    "Proposal",
    "ProposalDocument",
    "ProposerModel",
    "Request",
    "Scalar",
    "Signed",
    "WrittenModelDocument",
    "decode_proposal",
    "read_judged_proposal",
    "read_model",
    "read_proposal",
    "read_request",
]


@dataclass(frozen=True, slots=True)
class ProposerModel:
    """Which model proposed, as its proposer says: nothing is decided by it. An empty version: it names none."""

    id: str
    version: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The model as a JSON object; a version only if there is one."""
        return {"id": self.id, "version": self.version} if self.version else {"id": self.id}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One attempt at one case. call: the model's text as it came. tenant, case id and attempt (from 1) identify it."""

    case_id: str
    attempt: int
    call: str
    request: Request
    tenant: str = ""
    model: ProposerModel | None = None
    signed: Signed = UNSIGNED

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
        if self.signed != UNSIGNED:
            record["signed"] = self.signed.to_json()
        return record


_Text = Annotated[str, Field(min_length=1, max_length=256)]


class _ModelFields(TypedDict):
    id: _Text
    version: NotRequired[Annotated[str, Field(max_length=256)]]


# Each shape twice: as users send it, and as our records carry it on, whose readers ignore what they do not know.
@with_config(FORBID_UNKNOWN)
class ModelDocument(_ModelFields):
    pass


@with_config(IGNORE_UNKNOWN)
class WrittenModelDocument(_ModelFields):
    pass


class _Envelope(TypedDict):
    schema: NotRequired[Literal["proposal/1"]]
    case_id: _Text
    attempt: Annotated[int, Field(ge=1, le=1_000_000)]
    tenant: NotRequired[str]
    call: Annotated[str, Field(description="the model's text as it came")]
    model: NotRequired[ModelDocument]
    signed: NotRequired[SignedDocument]


@with_config(FORBID_UNKNOWN)
class _OuterDocument(_Envelope):
    # Read apart, so that all its wrong fields are named.
    request: dict[str, Any]


@with_config(ConfigDict(extra="forbid", strict=True, title="proposal/1"))
class ProposalDocument(_Envelope):
    """A proposal on the wire. Unknown fields are refused at every level."""

    request: RequestDocument


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


_OPTIONAL = ("schema", "tenant", "model", "signed")
_INNER = {"model": ("id", "version"), "signed": ("authority", "world")}
_OPTIONAL_INSIDE = _INNER | {"model": ("version",)}


@cache
def _proposal_check() -> TypeAdapter[_OuterDocument]:
    """Built at first use, as `codecs.ticket` says."""
    return TypeAdapter(_OuterDocument)


@cache
def _signed_check() -> TypeAdapter[WrittenSignedDocument]:
    return TypeAdapter(WrittenSignedDocument)


def _read_version_1(record: dict[str, JsonValue]) -> Proposal | Malformed:
    faults: list[Malformed] = []
    checked: _OuterDocument | None = None
    record = without_nulls(record, _OPTIONAL, inside=_OPTIONAL_INSIDE)
    try:
        checked = _proposal_check().validate_python(_few_unknown(record))
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
        model=read_model(checked["model"]) if "model" in checked else None,
        signed=read_signed(checked.get("signed", {})),
    )


def _few_unknown(record: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    inner = {
        name: few_unknown(value, known)
        for name, known in _INNER.items()
        if isinstance(value := record.get(name), dict)
    }
    return few_unknown({**record, **inner}, _HINTS)  # type: ignore[dict-item]  # a dict where there was one


def read_model(checked: _ModelFields) -> ProposerModel:
    """The model that a checked document is."""
    return ProposerModel(checked["id"], checked.get("version", ""))


_VERSIONS: Versions[Proposal] = Versions("proposal", {1: _read_version_1})

PROPOSAL_SCHEMA = _VERSIONS.current


def read_proposal(value: JsonValue) -> Proposal | Malformed:
    """The proposal that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a proposal is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)


def read_judged_proposal(value: Mapping[str, JsonValue]) -> Proposal | Malformed:
    """The proposal that the ledger keeps of a case: as `Proposal.to_json` writes it, with what signed texts said. Not
    for what others send: nobody has checked a signature where they say so."""
    proposal = read_proposal({name: each for name, each in value.items() if name != "signed"})
    if isinstance(proposal, Malformed) or "signed" not in value:
        return proposal
    try:
        signed = read_signed(_signed_check().validate_python(value["signed"]))
    except ValidationError:
        return Malformed(Stage.SCHEMA, "wrong_signed", '"signed" is not what records keep of it')
    return replace(proposal, signed=signed)


def decode_proposal(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Proposal | Malformed:
    """The proposal that a record's value is: bytes and shape judged as one total function."""
    value = decode(data, max_bytes=max_bytes)
    return value if isinstance(value, Malformed) else read_proposal(value)
