"""Receipts: the evidence of what was judged, of what was done, and of what a repair changed.

Promise: a receipt names what it rests on (versions, hashes, keys), so that it can be checked without the process
that wrote it. `kind` tells receipts apart on their topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from ticketgate.codecs.records.effect_receipt import (
    RECEIPT_SCHEMA,
    EffectReceipt,
    EffectReceiptDocument,
    EffectState,
    EffectStatus,
    JudgedAgain,
    SettledBy,
    read_effect_receipt,
)
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.pieces import (
    CatalogueDocument,
    CatalogueRef,
    CoordinateDocument,
    Moment,
    VerdictDocument,
    coordinate_json,
    moment_json,
    read_coordinate,
    read_moment,
    read_verdict,
    verdict_json,
)
from ticketgate.codecs.records.proposal import (
    PROPOSAL_SCHEMA,
    ProposerModel,
    WrittenModelDocument,
    read_model,
)
from ticketgate.codecs.records.repair_receipt import RepairReceipt, StopReason
from ticketgate.codecs.records.request import Request, WrittenRequestDocument, read_written_request
from ticketgate.codecs.values.malformed import Malformed, quote, wrong_kind
from ticketgate.codecs.values.shape import read_written
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, JsonValue, decode, encode
from ticketgate.codecs.values.times import to_milliseconds
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage, Verdict
from typing_extensions import TypedDict

__all__ = [
    "RECEIPT_SCHEMA",
    "CatalogueRef",
    "DecisionReceipt",
    "DecisionReceiptDocument",
    "EffectReceipt",
    "EffectReceiptDocument",
    "EffectState",
    "EffectStatus",
    "JudgedAgain",
    "RepairReceipt",
    "SettledBy",
    "StopReason",
    "decode_receipt",
    "read_receipt",
    "receipt_key",
    "verdict_json",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReceipt:
    """What was judged and on what grounds.

    evidence: version of the authority and of the world state by name. tool, arguments: the validated call; None
    and empty where no gate got so far. effect_created: False for a call that only observes; None, and not
    written, for one that asks for an effect, whose receipt is another. result: what an accepted observation brings,
    each value in one spelling; written only if there is any. mended: what mended the call's JSON syntax here, and
    nothing of its values; written only if anything did. idempotency_key, fingerprint: the attempt's own.
    source: where the proposal lies. at: the moment judged for, kept in milliseconds. These four and the model are
    None where nobody said.
    """

    case_id: str
    attempt: int
    tenant: str
    request: Request
    verdict: Verdict
    catalogue: CatalogueRef
    evidence: Mapping[str, str]
    tool: str | None = None
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    effect_created: bool | None = None
    result: Mapping[str, JsonValue] = field(default_factory=dict)
    mended: str | None = None
    model: ProposerModel | None = None
    proposal_schema: str = PROPOSAL_SCHEMA
    idempotency_key: IdempotencyKey | None = None
    fingerprint: Fingerprint | None = None
    source: Coordinate | None = None
    at: datetime | None = None

    def __post_init__(self) -> None:
        if self.at is not None:
            object.__setattr__(self, "at", to_milliseconds(self.at))

    def to_json(self) -> dict[str, JsonValue]:
        """The receipt as a JSON object in the wire's field order."""
        record: dict[str, JsonValue] = {
            "schema": RECEIPT_SCHEMA,
            "kind": "decision_receipt",
            "case_id": self.case_id,
            "attempt": self.attempt,
            "tenant": self.tenant,
            "request": self.request.to_json(),
            "verdict": verdict_json(self.verdict),
            "catalogue": self.catalogue.to_json(),
            "evidence": dict(self.evidence),
            "tool": self.tool,
            "arguments": dict(self.arguments),
        }
        if self.effect_created is not None:
            record["effect_created"] = self.effect_created
        if self.result:
            record["result"] = dict(self.result)
        if self.mended is not None:
            record["mended"] = self.mended
        return record | {
            "model": None if self.model is None else self.model.to_json(),
            "proposal_schema": self.proposal_schema,
            "idempotency_key": self.idempotency_key,
            "fingerprint": self.fingerprint,
            "source": None if self.source is None else coordinate_json(self.source),
            "at": moment_json(self.at),
        }

    def encode(self) -> bytes:
        """The receipt's bytes. Raises ValueError if anything in it is not JSON."""
        return encode(self.to_json())


@with_config(ConfigDict(extra="ignore", strict=True, title="receipt/1, decision_receipt"))
class DecisionReceiptDocument(TypedDict):
    """What was judged of an attempt at a case. Unknown fields are ignored at every level."""

    schema: Literal["receipt/1"]
    kind: Literal["decision_receipt"]
    case_id: str
    attempt: Annotated[int, Field(ge=1)]
    tenant: str
    request: WrittenRequestDocument
    verdict: VerdictDocument
    catalogue: CatalogueDocument
    evidence: Annotated[dict[str, str], Field(description="versions of what was looked up, by name")]
    tool: str | None
    arguments: dict[str, Any]
    effect_created: NotRequired[
        Annotated[bool, Field(description="false for an observation; absent where an effect is asked for")]
    ]
    result: NotRequired[Annotated[dict[str, Any], Field(description="what an accepted observation brings")]]
    mended: NotRequired[Annotated[str, Field(description="what mended the call's JSON syntax, and no value")]]
    model: Annotated[WrittenModelDocument | None, Field(description="who proposed, if it said")]
    proposal_schema: str
    idempotency_key: str | None
    fingerprint: str | None
    source: Annotated[CoordinateDocument | None, Field(description="where the proposal lies")]
    at: Moment | None


_DOCUMENTS: Mapping[str, Any] = {
    "decision_receipt": DecisionReceiptDocument,
    "effect_receipt": EffectReceiptDocument,
}


@cache
def _check(kind: str) -> TypeAdapter[Any]:
    """Built at first use, as `codecs.decision` says."""
    return TypeAdapter(_DOCUMENTS[kind])


def _read_version_1(value: dict[str, JsonValue]) -> DecisionReceipt | EffectReceipt | Malformed:
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in _DOCUMENTS:
        given = quote(kind) if isinstance(kind, str) else wrong_kind(kind)
        return Malformed(
            Stage.SCHEMA, "wrong_value", f'"kind" must be {" or ".join(map(quote, _DOCUMENTS))}, not {given}'
        )
    fields = _DOCUMENTS[kind].__annotations__
    make = read_effect_receipt if kind == "effect_receipt" else _read_decision
    return read_written(value, _check(kind), make, fields=fields, schema="receipt/1")


def _read_decision(checked: DecisionReceiptDocument) -> DecisionReceipt:
    model, key, said = checked["model"], checked["idempotency_key"], checked["fingerprint"]
    return DecisionReceipt(
        case_id=checked["case_id"],
        attempt=checked["attempt"],
        tenant=checked["tenant"],
        request=read_written_request(checked["request"]),
        verdict=read_verdict(checked["verdict"]),
        catalogue=CatalogueRef(**checked["catalogue"]),
        evidence=checked["evidence"],
        tool=checked["tool"],
        arguments=checked["arguments"],
        effect_created=checked.get("effect_created"),
        result=checked.get("result", {}),
        mended=checked.get("mended"),
        model=None if model is None else read_model(model),
        proposal_schema=checked["proposal_schema"],
        idempotency_key=None if key is None else IdempotencyKey(key),
        fingerprint=None if said is None else Fingerprint(said),
        source=read_coordinate(checked["source"]),
        at=read_moment(checked["at"]),
    )


_VERSIONS: Versions[DecisionReceipt | EffectReceipt] = Versions("receipt", {1: _read_version_1})


def read_receipt(value: JsonValue) -> DecisionReceipt | EffectReceipt | Malformed:
    """The receipt that a decoded value is, by its `kind`, or a reason at stage `schema` that names every wrong field
    at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a receipt is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)


def decode_receipt(
    data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES
) -> DecisionReceipt | EffectReceipt | Malformed:
    """The receipt that a record's value is: bytes and shape judged as one total function."""
    value = decode(data, max_bytes=max_bytes, is_our_own=True)
    return value if isinstance(value, Malformed) else read_receipt(value)


def receipt_key(receipt: DecisionReceipt | EffectReceipt) -> str:
    """The key of a receipt's record: an effect's own key, else the case id."""
    return receipt.idempotency_key if isinstance(receipt, EffectReceipt) else receipt.case_id
