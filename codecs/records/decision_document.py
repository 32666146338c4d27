"""A decision record as the wire has it: the models that it is read by, and that its JSON Schema is made from."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from ticketgate.codecs.records.pieces import CoordinateDocument, EffectDocument, Moment, VerdictDocument
from ticketgate.codecs.values.shape import IGNORE_UNKNOWN
from typing_extensions import TypedDict

_Chance = Annotated[int, Field(ge=0, le=1)] | Annotated[float, Field(ge=0, le=1)]


@with_config(IGNORE_UNKNOWN)
class ViolationDocument(TypedDict):
    rule: str
    message: str


@with_config(IGNORE_UNKNOWN)
class PolicyDocument(TypedDict):
    name: str
    version: str
    hash: str


@with_config(IGNORE_UNKNOWN)
class ModelDocument(TypedDict):
    id: str
    hash: str


@with_config(IGNORE_UNKNOWN)
class SettledByPersonDocument(TypedDict):
    settlement: str
    by: str
    at: Moment
    review: CoordinateDocument
    review_sha256: str
    reviewed: VerdictDocument
    selected: list[str]


@with_config(ConfigDict(extra="ignore", strict=True, title="decision/1"))
class DecisionDocument(TypedDict):
    """A decision record on the wire. Unknown fields are ignored at every level."""

    schema: Literal["decision/1"]
    ticket_id: str
    tenant: str
    verdict: VerdictDocument
    selected: Annotated[list[str], Field(description="sorted labels")]
    values: NotRequired[
        Annotated[dict[str, Any], Field(description="selected values of a JSON Schema, as they are")]
    ]
    violations: list[ViolationDocument]
    probabilities: Annotated[
        dict[str, _Chance | dict[str, _Chance]],
        Field(description="exactly as scored: noul the probability of true, others by label or level"),
    ]
    answers: Annotated[Any, Field(description="raw; a number that is not finite is text")]
    truncated: NotRequired[Annotated[list[str], Field(description="questions whose state was cut")]]
    policy: PolicyDocument
    model: ModelDocument
    effects: Annotated[list[EffectDocument], Field(description="empty unless accepted")]
    idempotency_key: str
    fingerprint: str
    coordinate: CoordinateDocument
    decided_at: Moment
    ticket: NotRequired[dict[str, Any]]
    settled: NotRequired[Annotated[SettledByPersonDocument, Field(description="where a person decided")]]
