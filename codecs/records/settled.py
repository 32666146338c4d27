"""What became of a settlement (`settled/1`): one for each that was sent, whether it took effect or not.

Promise: it names whom, what, where and why, so that a list of what waits, and an audit, need no other record. What took
effect as `accepted` has its decision in `dispatch` beside it, committed with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.pieces import (
    CoordinateDocument,
    Moment,
    coordinate_json,
    read_coordinate,
)
from ticketgate.codecs.records.settlement import Action
from ticketgate.codecs.values.malformed import Malformed, wrong_kind
from ticketgate.codecs.values.shape import read_written
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, JsonValue, decode, encode
from ticketgate.codecs.values.times import parse_rfc3339, rfc3339, to_milliseconds
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage
from typing_extensions import TypedDict

__all__ = ["SETTLED_SCHEMA", "Outcome", "SettledDocument", "SettledRecord", "decode_settled", "read_settled"]


class Outcome(StrEnum):
    """What became of a settlement; the first three took effect."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RETURNED = "returned"
    ALREADY_SETTLED = "already_settled"
    """Another settlement of the ticket had taken effect."""
    VOID = "void"
    """It was not taken; `code` and `reasons` say why, and the ticket waits as before."""

    @property
    def takes_effect(self) -> bool:
        """Whether the ticket is settled by it."""
        return self in (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.RETURNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRecord:
    """What became of one settlement.

    code: for machines, empty for what took effect. key: the ticket's, as the settlement says. action, labels, why, by,
    at: as the settlement says them, and to be believed only where it took effect. policy: the hash of the policy that
    was in force. owner: where the settlement lies that had settled the ticket before. idempotency_key: the ticket's
    with a suffix. coordinate: where the settlement lies. decided_at: kept in milliseconds.
    """

    id: str
    ticket_id: str
    tenant: str
    key: IdempotencyKey
    outcome: Outcome
    code: str = ""
    reasons: tuple[str, ...] = ()
    action: Action
    labels: tuple[str, ...] = ()
    review: Coordinate
    review_sha256: str
    why: str
    by: str
    at: datetime
    policy: str | None
    owner: Coordinate | None = None
    idempotency_key: IdempotencyKey
    fingerprint: Fingerprint
    coordinate: Coordinate
    decided_at: datetime

    def __post_init__(self) -> None:
        if self.outcome.takes_effect is bool(self.code):
            raise ValueError(f"settlement {self.id}: {self.outcome} with the code {self.code!r}")
        object.__setattr__(self, "at", to_milliseconds(self.at))
        object.__setattr__(self, "decided_at", to_milliseconds(self.decided_at))

    def to_json(self) -> dict[str, JsonValue]:
        """The record as a JSON object in the wire's field order."""
        return {
            "schema": SETTLED_SCHEMA,
            "id": self.id,
            "ticket_id": self.ticket_id,
            "tenant": self.tenant,
            "key": self.key,
            "outcome": str(self.outcome),
            "code": self.code,
            "reasons": list(self.reasons),
            "action": str(self.action),
            "labels": list(self.labels),
            "review": coordinate_json(self.review),
            "review_sha256": self.review_sha256,
            "why": self.why,
            "by": self.by,
            "at": rfc3339(self.at),
            "policy": self.policy,
            "owner": None if self.owner is None else coordinate_json(self.owner),
            "idempotency_key": self.idempotency_key,
            "fingerprint": self.fingerprint,
            "coordinate": coordinate_json(self.coordinate),
            "decided_at": rfc3339(self.decided_at),
        }

    def encode(self) -> bytes:
        """The record's bytes."""
        return encode(self.to_json())


@with_config(ConfigDict(extra="ignore", strict=True, title="settled/1"))
class SettledDocument(TypedDict):
    """What became of a settlement, on the wire. Unknown fields are ignored at every level."""

    schema: Literal["settled/1"]
    id: str
    ticket_id: str
    tenant: str
    key: Annotated[str, Field(description="the ticket's idempotency key")]
    outcome: Annotated[Outcome, Field(strict=False)]
    code: Annotated[str, Field(description="why it took no effect; else empty")]
    reasons: list[str]
    action: Annotated[Action, Field(strict=False)]
    labels: list[str]
    review: CoordinateDocument
    review_sha256: str
    why: str
    by: Annotated[str, Field(description="a pseudonym")]
    at: Moment
    policy: Annotated[str | None, Field(description="hash of the policy in force")]
    owner: Annotated[CoordinateDocument | None, Field(description="the settlement that was before it")]
    idempotency_key: str
    fingerprint: str
    coordinate: CoordinateDocument
    decided_at: Moment


@cache
def _check() -> TypeAdapter[SettledDocument]:
    """Built at first use, as `codecs.decision` says."""
    return TypeAdapter(SettledDocument)


def _read_version_1(value: dict[str, JsonValue]) -> SettledRecord | Malformed:
    fields = SettledDocument.__annotations__
    return read_written(value, _check(), _made, fields=fields, schema="settled/1")


def _made(checked: SettledDocument) -> SettledRecord:
    return SettledRecord(
        id=checked["id"],
        ticket_id=checked["ticket_id"],
        tenant=checked["tenant"],
        key=IdempotencyKey(checked["key"]),
        outcome=checked["outcome"],
        code=checked["code"],
        reasons=tuple(checked["reasons"]),
        action=checked["action"],
        labels=tuple(checked["labels"]),
        review=Coordinate(**checked["review"]),
        review_sha256=checked["review_sha256"],
        why=checked["why"],
        by=checked["by"],
        at=parse_rfc3339(checked["at"]),
        policy=checked["policy"],
        owner=read_coordinate(checked["owner"]),
        idempotency_key=IdempotencyKey(checked["idempotency_key"]),
        fingerprint=Fingerprint(checked["fingerprint"]),
        coordinate=Coordinate(**checked["coordinate"]),
        decided_at=parse_rfc3339(checked["decided_at"]),
    )


_VERSIONS: Versions[SettledRecord] = Versions("settled", {1: _read_version_1})

SETTLED_SCHEMA = _VERSIONS.current


def read_settled(value: JsonValue) -> SettledRecord | Malformed:
    """The record that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a settled record is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)


def decode_settled(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> SettledRecord | Malformed:
    """The record that a value's bytes are: bytes and shape judged as one total function."""
    value = decode(data, max_bytes=max_bytes)
    return value if isinstance(value, Malformed) else read_settled(value)
