"""Case decisions: what the gates said of a proposed call, to `dispatch`, `repairs` or `review`.

Promise: an accepted effect's record holds all that is needed to judge it again: the call, the request and the digests
of what was signed, beside the evidence as it was looked up. Readers ignore fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from ticketgate.codecs.records.decision import DecisionRecord, read_decision
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.pieces import (
    CatalogueDocument,
    CatalogueRef,
    CoordinateDocument,
    Effect,
    EffectDocument,
    EvidenceDocument,
    Moment,
    VerdictDocument,
    coordinate_json,
    effects_json,
    read_effects,
    read_evidence,
    read_verdict,
    verdict_json,
)
from ticketgate.codecs.records.proposal import (
    UNSIGNED,
    Proposal,
    ProposerModel,
    Signed,
    WrittenModelDocument,
    read_model,
)
from ticketgate.codecs.records.repair_receipt import RepairDocument, RepairReceipt, read_repair
from ticketgate.codecs.records.request import Request, WrittenRequestDocument, read_written_request
from ticketgate.codecs.records.signed import WrittenSignedDocument, read_signed, with_what_it_said
from ticketgate.codecs.values.malformed import Malformed, wrong_kind
from ticketgate.codecs.values.shape import IGNORE_UNKNOWN, read_written
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, JsonValue, decode, encode
from ticketgate.codecs.values.times import parse_rfc3339, rfc3339, to_milliseconds
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage, Status, Verdict
from typing_extensions import TypedDict

__all__ = [
    "CASE_DECISION_SCHEMA",
    "CaseDecision",
    "CaseDecisionDocument",
    "ProposedCall",
    "decode_case_decision",
    "read_case_decision",
    "read_dispatched",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCall:
    """What of a proposal its record's other fields do not say: the model's text, the request, what was signed."""

    call: str
    request: Request
    signed: Signed = UNSIGNED

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON object; `signed` only if there is any."""
        record: dict[str, JsonValue] = {"call": self.call, "request": self.request.to_json()}
        if self.signed != UNSIGNED:
            record["signed"] = self.signed.to_json()
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDecision:
    """One decision on one attempt at a case.

    case_id: also the record's key. tool, arguments: the validated call; None and empty where no gate got so far.
    evidence: `{"authority": object or None, "world": object}` as looked up, whole, and `unreadable`, a list, where an
    answer was no evidence. model: who proposed, if it said.
    effects: empty unless an effect is accepted. result: what an accepted observation brings; written only if there is
    any. repair: what may be mended, or why no more, if that was asked.
    idempotency_key: the claimed key, or one derived from it. decided_at: the moment judged for, given by the caller
    from the record; kept in milliseconds. proposal: None only where the record would be too large with it, and then
    nothing is accepted.
    Raises ValueError for a contradiction: effects without acceptance, acceptance without the proposal, a repair that
    says nothing of what to mend, a time without zone.
    """

    case_id: str
    attempt: int
    tenant: str = ""
    verdict: Verdict
    tool: str | None = None
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    catalogue: CatalogueRef
    evidence: Mapping[str, JsonValue]
    model: ProposerModel | None = None
    effects: tuple[Effect, ...] = ()
    result: Mapping[str, JsonValue] = field(default_factory=dict)
    repair: RepairReceipt | None = None
    idempotency_key: IdempotencyKey
    fingerprint: Fingerprint
    coordinate: Coordinate
    decided_at: datetime
    proposal: ProposedCall | None

    def __post_init__(self) -> None:
        if self.effects and self.verdict.status is not Status.ACCEPT:
            raise ValueError(f"case {self.case_id!r}: effects on a decision of {self.verdict.status}")
        if self.effects and self.proposal is None:
            raise ValueError(f"case {self.case_id!r}: effects without the proposal, which is judged again")
        if self.verdict.status is Status.REPAIR and self.repair is None:
            raise ValueError(f"case {self.case_id!r}: a repair without the receipt that says what may change")
        object.__setattr__(self, "decided_at", to_milliseconds(self.decided_at))

    def proposed(self) -> Proposal | None:
        """The proposal that was judged, whole, to be judged again; None where it was left out for its size."""
        if self.proposal is None:
            return None
        return Proposal(
            case_id=self.case_id,
            attempt=self.attempt,
            call=self.proposal.call,
            request=self.proposal.request,
            tenant=self.tenant,
            model=self.model,
            signed=with_what_it_said(self.proposal.signed, self.evidence),
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The record as a JSON object in the wire's field order."""
        record: dict[str, JsonValue] = {
            "schema": CASE_DECISION_SCHEMA,
            "case_id": self.case_id,
            "attempt": self.attempt,
            "tenant": self.tenant,
            "verdict": verdict_json(self.verdict),
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "catalogue": self.catalogue.to_json(),
            "evidence": dict(self.evidence),
            "model": None if self.model is None else self.model.to_json(),
            "effects": effects_json(self.effects),
            "repair": None if self.repair is None else self.repair.to_json(),
            "idempotency_key": self.idempotency_key,
            "fingerprint": self.fingerprint,
            "coordinate": coordinate_json(self.coordinate),
            "decided_at": rfc3339(self.decided_at),
        }
        if self.result:
            record["result"] = dict(self.result)
        if self.proposal is not None:
            record["proposal"] = self.proposal.to_json()
        return record

    def encode(self) -> bytes:
        """The record's bytes. Raises ValueError if anything in it is not JSON."""
        return encode(self.to_json())


@with_config(IGNORE_UNKNOWN)
class ProposedCallDocument(TypedDict):
    call: str
    request: WrittenRequestDocument
    signed: NotRequired[WrittenSignedDocument]


@with_config(ConfigDict(extra="ignore", strict=True, title="case-decision/1"))
class CaseDecisionDocument(TypedDict):
    """A case decision on the wire. Unknown fields are ignored at every level."""

    schema: Literal["case-decision/1"]
    case_id: str
    attempt: Annotated[int, Field(ge=1)]
    tenant: str
    verdict: VerdictDocument
    tool: Annotated[str | None, Field(description="the validated call's; null where no gate got so far")]
    arguments: dict[str, Any]
    catalogue: CatalogueDocument
    evidence: Annotated[EvidenceDocument, Field(description="as looked up, with versions")]
    model: Annotated[WrittenModelDocument | None, Field(description="who proposed, if it said")]
    effects: Annotated[list[EffectDocument], Field(description="empty unless an effect is accepted")]
    repair: RepairDocument | None
    idempotency_key: str
    fingerprint: str
    coordinate: CoordinateDocument
    decided_at: Moment
    result: NotRequired[Annotated[dict[str, Any], Field(description="what an accepted observation brings")]]
    proposal: NotRequired[
        Annotated[ProposedCallDocument, Field(description="left out where the record would be too large")]
    ]


@cache
def _check() -> TypeAdapter[CaseDecisionDocument]:
    """Built at first use, as `codecs.decision` says."""
    return TypeAdapter(CaseDecisionDocument)


def _read_version_1(value: dict[str, JsonValue]) -> CaseDecision | Malformed:
    fields = CaseDecisionDocument.__annotations__
    return read_written(value, _check(), _made, fields=fields, schema="case-decision/1")


def _made(checked: CaseDecisionDocument) -> CaseDecision:
    return CaseDecision(
        case_id=checked["case_id"],
        attempt=checked["attempt"],
        tenant=checked["tenant"],
        verdict=read_verdict(checked["verdict"]),
        tool=checked["tool"],
        arguments=checked["arguments"],
        catalogue=CatalogueRef(**checked["catalogue"]),
        evidence=read_evidence(checked["evidence"]),
        model=None if checked["model"] is None else read_model(checked["model"]),
        effects=read_effects(checked["effects"]),
        result=checked.get("result", {}),
        repair=None if checked["repair"] is None else read_repair(checked["repair"]),
        idempotency_key=IdempotencyKey(checked["idempotency_key"]),
        fingerprint=Fingerprint(checked["fingerprint"]),
        coordinate=Coordinate(**checked["coordinate"]),
        decided_at=parse_rfc3339(checked["decided_at"]),
        proposal=_proposed(checked["proposal"]) if "proposal" in checked else None,
    )


def _proposed(checked: ProposedCallDocument) -> ProposedCall:
    return ProposedCall(
        call=checked["call"],
        request=read_written_request(checked["request"]),
        signed=read_signed(checked.get("signed", {})),
    )


_VERSIONS: Versions[CaseDecision] = Versions("case-decision", {1: _read_version_1})

CASE_DECISION_SCHEMA = _VERSIONS.current


def read_case_decision(value: JsonValue) -> CaseDecision | Malformed:
    """The record that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a case decision is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)


def decode_case_decision(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> CaseDecision | Malformed:
    """The case decision that a record's value is: bytes and shape judged as one total function."""
    value = decode(data, max_bytes=max_bytes, is_our_own=True)
    return value if isinstance(value, Malformed) else read_case_decision(value)


def read_dispatched(value: JsonValue) -> DecisionRecord | CaseDecision | Malformed:
    """What stands on `dispatch`, read by its `schema`: the decision on a ticket, or on a case."""
    schema = value.get("schema") if isinstance(value, dict) else None
    if isinstance(schema, str) and schema.startswith(f"{_VERSIONS.kind}/"):
        return read_case_decision(value)
    return read_decision(value)
