"""Effect receipts: each step of an effect, from its key's binding to what was read back.

Promise: a receipt says all that the ledger's entry of the effect needs to be restored, and which of two receipts holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.pieces import (
    CoordinateDocument,
    EvidenceDocument,
    Moment,
    VerdictDocument,
    coordinate_json,
    moment_json,
    read_coordinate,
    read_evidence,
    read_moment,
    read_verdict,
    verdict_json,
)
from ticketgate.codecs.values.shape import IGNORE_UNKNOWN
from ticketgate.codecs.values.strict import JsonValue, encode
from ticketgate.codecs.values.times import parse_rfc3339, rfc3339, to_milliseconds
from ticketgate.codecs.verdict import Verdict
from typing_extensions import TypedDict

__all__ = [
    "EffectReceipt",
    "EffectReceiptDocument",
    "EffectState",
    "EffectStatus",
    "JudgedAgain",
    "SettledBy",
    "read_effect_receipt",
]

# Written here, where both kinds of receipt can see it; `codecs.receipt` reads by it.
RECEIPT_SCHEMA: Final = "receipt/1"


class EffectState(StrEnum):
    """How far an effect is, as the ledger says: bound to its key; sent, and its outcome open; and the three ends.

    prepared → unknown → committed, rejected or absent; absent → unknown once, by the one resend; prepared → rejected
    where the gates say no just before sending, and the key is then free for another order.
    """

    PREPARED = "prepared"
    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABSENT = "absent"
    REJECTED = "rejected"


class EffectStatus(StrEnum):
    """How a committed effect came to be known: by this command, by an earlier one under its key, by reading back
    alone, or by a person's word."""

    CREATED = "created"
    REPLAYED = "replayed"
    VERIFIED_BY_READBACK = "verified_by_readback"
    SETTLED_BY_PERSON = "settled_by_person"


@dataclass(frozen=True, slots=True)
class SettledBy:
    """Who settled by hand what reading back could not, and why."""

    actor: str
    reason: str

    def to_json(self) -> dict[str, JsonValue]:
        """The person and the reason as a JSON object."""
        return {"actor": self.actor, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """What the gates stopped an effect on at their second look: evidence in a case decision's form, and the moment that
    was judged for, kept in milliseconds. evidence: None only where the record would be too large with it."""

    evidence: Mapping[str, JsonValue] | None
    at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", to_milliseconds(self.at))

    def to_json(self) -> dict[str, JsonValue]:
        """Evidence and moment as a JSON object."""
        return {"evidence": None if self.evidence is None else dict(self.evidence), "at": rfc3339(self.at)}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectReceipt:
    """One step of an effect: the command, its key, how far it is, and what was read back.

    status: how a committed effect came to be known; None in every other state. provider_id, state: what stands, as
    read back; None and empty where nothing was. sequence: counts the ledger's steps; the receipt with the highest is
    the one that holds. sends: how often it was sent, at most 2. provider: its name in the funnel file. source: where
    the dispatched record lies. subject: the ticket's or the case's id. verdict: None while prepared.
    confirmation: the digest of the confirmation that the effect used up, if it needed one.
    judged_again: what the verdict rests on where the gates stopped the effect at their second look, and None else. at:
    the ledger's time of the step, kept in milliseconds.
    Raises ValueError for a contradiction: a status without a committed effect, a time without zone.
    """

    status: EffectStatus | None
    tool: str
    arguments: Mapping[str, JsonValue]
    provider_id: str | None
    idempotency_key: str
    state: Mapping[str, JsonValue]
    effect_state: EffectState = EffectState.COMMITTED
    sequence: int = 0
    sends: int = 0
    provider: str = ""
    source: Coordinate | None = None
    subject: str = ""
    verdict: Verdict | None = None
    settled_by: SettledBy | None = None
    judged_again: JudgedAgain | None = None
    at: datetime | None = None
    confirmation: str | None = None

    def __post_init__(self) -> None:
        if (self.status is not None) != (self.effect_state is EffectState.COMMITTED):
            raise ValueError(
                f"effect {self.idempotency_key!r}: a status stands in a committed effect's receipt and in no other,"
                f" not {self.status} with {self.effect_state}"
            )
        if self.at is not None:
            object.__setattr__(self, "at", to_milliseconds(self.at))

    def to_json(self) -> dict[str, JsonValue]:
        """The receipt as a JSON object in the wire's field order."""
        record: dict[str, JsonValue] = {
            "schema": RECEIPT_SCHEMA,
            "kind": "effect_receipt",
            "status": None if self.status is None else str(self.status),
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "provider_id": self.provider_id,
            "idempotency_key": self.idempotency_key,
            "state": dict(self.state),
            "effect_state": str(self.effect_state),
            "sequence": self.sequence,
            "sends": self.sends,
            "provider": self.provider,
            "source": None if self.source is None else coordinate_json(self.source),
            "subject": self.subject,
            "verdict": None if self.verdict is None else verdict_json(self.verdict),
            "settled_by": None if self.settled_by is None else self.settled_by.to_json(),
            "at": moment_json(self.at),
        }
        if self.judged_again is not None:
            record["judged_again"] = self.judged_again.to_json()
        if self.confirmation is not None:
            record["confirmation"] = self.confirmation
        return record

    def encode(self) -> bytes:
        """The receipt's bytes. Raises ValueError if a number is not finite or anything else is not JSON."""
        return encode(self.to_json())


@with_config(IGNORE_UNKNOWN)
class SettledByDocument(TypedDict):
    actor: str
    reason: str


@with_config(IGNORE_UNKNOWN)
class JudgedAgainDocument(TypedDict):
    evidence: Annotated[EvidenceDocument | None, Field(description="null: left out, and a reason says so")]
    at: Annotated[Moment, Field(description="the moment judged for")]


@with_config(ConfigDict(extra="ignore", strict=True, title="receipt/1, effect_receipt"))
class EffectReceiptDocument(TypedDict):
    """One step of an effect. Unknown fields are ignored at every level."""

    schema: Literal["receipt/1"]
    kind: Literal["effect_receipt"]
    status: Annotated[
        Annotated[EffectStatus, Field(strict=False)] | None,
        Field(description="how a committed effect came to be known; null in every other state"),
    ]
    tool: str
    arguments: dict[str, Any]
    provider_id: str | None
    idempotency_key: str
    state: Annotated[dict[str, Any], Field(description="what stands, as read back")]
    effect_state: Annotated[EffectState, Field(strict=False)]
    sequence: Annotated[int, Field(ge=0, description="the receipt with the highest is the one that holds")]
    sends: Annotated[int, Field(ge=0)]
    provider: str
    source: Annotated[CoordinateDocument | None, Field(description="where the dispatched record lies")]
    subject: Annotated[str, Field(description="the ticket's or the case's id")]
    verdict: VerdictDocument | None
    settled_by: SettledByDocument | None
    at: Moment | None
    judged_again: NotRequired[
        Annotated[JudgedAgainDocument, Field(description="of an effect that was stopped at its second look")]
    ]
    confirmation: NotRequired[
        Annotated[str, Field(description="digest of the person's confirmation that the effect used up")]
    ]


def read_effect_receipt(checked: EffectReceiptDocument) -> EffectReceipt:
    """The receipt that a checked document is. Raises ValueError for a contradiction."""
    verdict, settled_by = checked["verdict"], checked["settled_by"]
    return EffectReceipt(
        status=checked["status"],
        tool=checked["tool"],
        arguments=checked["arguments"],
        provider_id=checked["provider_id"],
        idempotency_key=checked["idempotency_key"],
        state=checked["state"],
        effect_state=checked["effect_state"],
        sequence=checked["sequence"],
        sends=checked["sends"],
        provider=checked["provider"],
        source=read_coordinate(checked["source"]),
        subject=checked["subject"],
        verdict=None if verdict is None else read_verdict(verdict),
        settled_by=None if settled_by is None else SettledBy(**settled_by),
        judged_again=_judged_again(checked["judged_again"]) if "judged_again" in checked else None,
        at=read_moment(checked["at"]),
        confirmation=checked.get("confirmation"),
    )


def _judged_again(checked: JudgedAgainDocument) -> JudgedAgain:
    evidence = checked["evidence"]
    return JudgedAgain(
        None if evidence is None else read_evidence(evidence),
        parse_rfc3339(checked["at"]),
    )
