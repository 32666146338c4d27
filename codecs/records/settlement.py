"""Settlements: what a person decides about a record in `review`, signed by the console that sent it (`settlement/1`).

Promise: what comes out has exactly the fields below, and what it says is one text of bytes (`said`), which its
signature and its fingerprint cover whole. Nothing here trusts it: who may settle, and whether the policy agrees, is
judged by who takes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.pieces import Effect, Moment, coordinate_json, effects_json
from ticketgate.codecs.values.malformed import Malformed, wrong_kind
from ticketgate.codecs.values.shape import FORBID_UNKNOWN, wrong_fields
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, JsonValue, canonical, decode, encode
from ticketgate.codecs.values.times import parse_rfc3339, rfc3339, to_milliseconds
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage
from typing_extensions import TypedDict

__all__ = [
    "SETTLEMENT_SCHEMA",
    "Action",
    "Settlement",
    "SettlementDocument",
    "decode_settlement",
    "effects_digest",
    "read_settlement",
    "settlement_fingerprint",
    "value_digest",
]


class Action(StrEnum):
    """What a person decides."""

    ACCEPT = "accept"
    """These labels are right; what the policy asks for under them may be carried out."""

    REJECT = "reject"
    """Nothing is to follow from this ticket."""

    RETURN = "return"
    """Whoever sent it is to send another, under another id; nothing follows from this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """One decision by a person. Nothing of it is trusted before its signature was checked.

    id: a UUID, made when the page with the ticket was made, so that pressing twice settles once. ticket_id: also the
    record's key. key: the ticket's idempotency key. review, review_sha256: where the record lies in `review`, and the
    SHA-256 of its value there. labels: sorted, all that the person selected; empty unless accepted. policy, effects:
    the policy's hash and the digest of the effects that were shown; only of what is accepted. by: a pseudonym.
    at, expires_at: kept in milliseconds. signature: a compact JWS whose payload is detached and is `said`; empty before
    it is signed. Raises ValueError for a contradiction.
    """

    id: str
    action: Action
    ticket_id: str
    key: IdempotencyKey
    review: Coordinate
    review_sha256: str
    labels: tuple[str, ...] = ()
    policy: str | None = None
    effects: str | None = None
    why: str = ""
    by: str
    at: datetime
    expires_at: datetime
    signature: str = ""

    def __post_init__(self) -> None:
        is_accepted = self.action is Action.ACCEPT
        if list(self.labels) != sorted(set(self.labels)):
            raise ValueError(
                f"settlement {self.id}: labels must be sorted, each once, not {list(self.labels)}"
            )
        if is_accepted and (self.policy is None or self.effects is None):
            raise ValueError(f"settlement {self.id}: what is accepted names the policy and the effects shown")
        if not is_accepted and (self.labels or self.policy is not None or self.effects is not None):
            raise ValueError(
                f"settlement {self.id}: labels, policy and effects belong to what is accepted alone"
            )
        object.__setattr__(self, "at", to_milliseconds(self.at))
        object.__setattr__(self, "expires_at", to_milliseconds(self.expires_at))

    @property
    def said(self) -> bytes:
        """All but the signature, as canonical JSON: what is signed."""
        return canonical(replace(self, signature="").to_json())

    def to_json(self) -> dict[str, JsonValue]:
        """The settlement as a JSON object in the wire's field order."""
        record: dict[str, JsonValue] = {
            "schema": SETTLEMENT_SCHEMA,
            "id": self.id,
            "action": str(self.action),
            "ticket_id": self.ticket_id,
            "key": self.key,
            "review": coordinate_json(self.review),
            "review_sha256": self.review_sha256,
        }
        if self.action is Action.ACCEPT:
            record |= {"labels": list(self.labels), "policy": self.policy, "effects": self.effects}
        record |= {
            "why": self.why,
            "by": self.by,
            "at": rfc3339(self.at),
            "expires_at": rfc3339(self.expires_at),
        }
        if self.signature:
            record["signature"] = self.signature
        return record

    def encode(self) -> bytes:
        """The record's bytes."""
        return encode(self.to_json())


_Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@with_config(FORBID_UNKNOWN)
class PlaceDocument(TypedDict):
    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    partition: Annotated[int, Field(ge=0, lt=2**31)]
    offset: Annotated[int, Field(ge=0, lt=2**63)]


@with_config(ConfigDict(extra="forbid", strict=True, title="settlement/1"))
class SettlementDocument(TypedDict):
    """A person's decision on the wire. Unknown fields are refused."""

    schema: Literal["settlement/1"]
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", description="a UUID")]
    action: Annotated[Action, Field(strict=False)]
    ticket_id: Annotated[str, Field(min_length=1, max_length=256)]
    key: Annotated[_Hex, Field(description="the ticket's idempotency key")]
    review: Annotated[PlaceDocument, Field(description="where the record lies that is settled")]
    review_sha256: Annotated[_Hex, Field(description="of that record's value")]
    labels: NotRequired[
        Annotated[list[str], Field(max_length=10_000, description="sorted; of what is accepted")]
    ]
    policy: NotRequired[Annotated[_Hex, Field(description="hash of the policy that was shown")]]
    effects: NotRequired[Annotated[_Hex, Field(description="digest of the effects that were shown")]]
    why: Annotated[str, Field(max_length=4_000)]
    by: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$", description="a pseudonym")]
    at: Moment
    expires_at: Annotated[Moment, Field(description="not taken from then on")]
    signature: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9_-]+\.\.[A-Za-z0-9_-]+$",
            max_length=4_096,
            description="a compact JWS with a detached payload: all other fields as canonical JSON",
        ),
    ]


@cache
def _check() -> TypeAdapter[SettlementDocument]:
    """Built at first use, as `codecs.ticket` says."""
    return TypeAdapter(SettlementDocument)


_HINTS = {
    "schema": '"settlement/1"',
    "id": "a UUID in lower case",
    "action": "accept, reject or return",
    "ticket_id": "text of 1 to 256 characters",
    "key": "64 hexadecimal digits",
    "review": "an object of topic, partition and offset",
    "review_sha256": "64 hexadecimal digits",
    "labels": "an array of texts",
    "policy": "64 hexadecimal digits",
    "effects": "64 hexadecimal digits",
    "why": "text of at most 4000 characters",
    "by": "1 to 128 letters, digits, dots, dashes or underscores",
    "at": "an RFC 3339 time such as 2026-11-29T18:00:00Z",
    "expires_at": "an RFC 3339 time such as 2026-11-29T18:00:00Z",
    "signature": "a compact JWS with a detached payload",
}


def _read_version_1(record: dict[str, JsonValue]) -> Settlement | Malformed:
    try:
        checked = _check().validate_python(record)
    except ValidationError as err:
        return wrong_fields(err, record, _HINTS, unknown="not one of settlement/1")
    try:
        return _made(checked)
    except ValueError as err:
        return Malformed(Stage.SCHEMA, "contradiction", str(err))


def _made(checked: SettlementDocument) -> Settlement:
    return Settlement(
        id=checked["id"],
        action=checked["action"],
        ticket_id=checked["ticket_id"],
        key=IdempotencyKey(checked["key"]),
        review=Coordinate(**checked["review"]),
        review_sha256=checked["review_sha256"],
        labels=tuple(checked.get("labels", ())),
        policy=checked.get("policy"),
        effects=checked.get("effects"),
        why=checked["why"],
        by=checked["by"],
        at=parse_rfc3339(checked["at"]),
        expires_at=parse_rfc3339(checked["expires_at"]),
        signature=checked["signature"],
    )


_VERSIONS: Versions[Settlement] = Versions("settlement", {1: _read_version_1})

SETTLEMENT_SCHEMA = _VERSIONS.current


def read_settlement(value: JsonValue) -> Settlement | Malformed:
    """The settlement that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a settlement is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)


def decode_settlement(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Settlement | Malformed:
    """The settlement that a record's value is: bytes and shape judged as one total function."""
    value = decode(data, max_bytes=max_bytes)
    return value if isinstance(value, Malformed) else read_settlement(value)


def settlement_fingerprint(settlement: Settlement) -> Fingerprint:
    """What a settlement says: SHA-256 of all but its signature. The same one sent again is the same; whatever else
    is sent about the ticket, by whomever, is another."""
    return Fingerprint(hashlib.sha256(settlement.said).hexdigest())


def value_digest(value: bytes) -> str:
    """By which a settlement names the record in `review` that it settles: SHA-256 of its value."""
    return hashlib.sha256(value).hexdigest()


def effects_digest(effects: Iterable[Effect]) -> str:
    """By which a settlement names the effects that were shown: SHA-256 of their canonical JSON, in their order."""
    said: Mapping[str, JsonValue] = {"effects": effects_json(effects)}
    return hashlib.sha256(canonical(said)).hexdigest()
