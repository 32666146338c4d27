"""Receipts: the evidence of what was judged, of what was done, and of what a repair changed (DESIGN section 7).

Promise: a receipt names what it rests on (versions, hashes, keys), so that it can be checked without the process
that wrote it. `kind` tells receipts apart on their topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ticketgate.codecs.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.pieces import coordinate_json, verdict_json
from ticketgate.codecs.proposal import PROPOSAL_SCHEMA, ProposerModel, Request
from ticketgate.codecs.strict import JsonValue, encode
from ticketgate.codecs.times import rfc3339, to_milliseconds
from ticketgate.codecs.verdict import Verdict

__all__ = [
    "RECEIPT_SCHEMA",
    "CatalogueRef",
    "DecisionReceipt",
    "EffectReceipt",
    "EffectState",
    "EffectStatus",
    "RepairReceipt",
    "SettledBy",
    "StopReason",
    "verdict_json",
]


RECEIPT_SCHEMA = "receipt/1"


class EffectState(StrEnum):
    """How far an effect is, as the ledger says: bound to its key; sent, and its outcome open; and the three ends.

    prepared → unknown → committed, rejected or absent; absent → unknown once, by the one resend; prepared → rejected
    where the gates say no just before sending.
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


class StopReason(StrEnum):
    """Why a repair goes no further."""

    REPAIRED = "repaired"
    NOT_REPAIRABLE = "not_repairable"
    UNPERMITTED_CHANGE = "unpermitted_change"
    OSCILLATION = "oscillation"
    BUDGET_EXHAUSTED = "budget_exhausted"


@dataclass(frozen=True, slots=True)
class CatalogueRef:
    """Which catalogue was offered: its name and version, and the SHA-256 (hex) of what was published."""

    name: str
    version: str
    hash: str

    def to_json(self) -> dict[str, JsonValue]:
        """The reference as a JSON object."""
        return {"name": self.name, "version": self.version, "hash": self.hash}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReceipt:
    """What was judged and on what grounds.

    evidence: version of the authority and of the world state by name. tool, arguments: the validated call; None
    and empty where no gate got so far. effect_created: False for a call that only observes; None, and not
    written, for one that asks for an effect, whose receipt is another. idempotency_key, fingerprint: the attempt's own.
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
    model: ProposerModel | None = None
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
        return record | {
            "model": None if self.model is None else self.model.to_json(),
            "proposal_schema": PROPOSAL_SCHEMA,
            "idempotency_key": self.idempotency_key,
            "fingerprint": self.fingerprint,
            "source": None if self.source is None else coordinate_json(self.source),
            "at": None if self.at is None else rfc3339(self.at),
        }

    def encode(self) -> bytes:
        """The receipt's bytes. Raises ValueError if anything in it is not JSON."""
        return encode(self.to_json())


@dataclass(frozen=True, slots=True)
class SettledBy:
    """Who settled by hand what reading back could not, and why."""

    actor: str
    reason: str

    def to_json(self) -> dict[str, JsonValue]:
        """The person and the reason as a JSON object."""
        return {"actor": self.actor, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectReceipt:
    """One step of an effect: the command, its key, how far it is, and what was read back.

    status: how a committed effect came to be known; None in every other state. provider_id, state: what stands, as
    read back; None and empty where nothing was. sequence: counts the ledger's steps; the receipt with the highest is
    the one that holds. sends: how often it was sent, at most 2. provider: its name in the funnel file. source: where
    the dispatched record lies. subject: the ticket's or the case's id. verdict: None while prepared. at: the ledger's
    time of the step, kept in milliseconds.
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
    at: datetime | None = None

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
        return {
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
            "at": None if self.at is None else rfc3339(self.at),
        }

    def encode(self) -> bytes:
        """The receipt's bytes. Raises ValueError if a number is not finite or anything else is not JSON."""
        return encode(self.to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReceipt:
    """What a proposer may mend of one attempt, or why it may mend no more.

    stage, codes: the failed layer and what it said. source_of_truth: where `anchors`, the authoritative values of
    the permitted fields, come from. before, after: the changed parts of the call since the attempt before, by
    field; empty for a first attempt. model: who proposed, if it said. proposal_schema: the version that the proposal
    was read by. maximum: repairs of this stage that a case has;
    remaining: what is left with this one granted. stop_reason: None while the repair goes on.
    """

    stage: str
    codes: tuple[str, ...]
    source_of_truth: str
    permitted: tuple[str, ...]
    anchors: Mapping[str, JsonValue]
    before: Mapping[str, JsonValue]
    after: Mapping[str, JsonValue]
    catalogue: CatalogueRef
    attempt: int
    maximum: int
    remaining: int
    model: ProposerModel | None = None
    proposal_schema: str = PROPOSAL_SCHEMA
    stop_reason: StopReason | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """The receipt as a JSON object."""
        return {
            "kind": "repair_receipt",
            "stage": self.stage,
            "codes": list(self.codes),
            "source_of_truth": self.source_of_truth,
            "permitted": list(self.permitted),
            "anchors": dict(self.anchors),
            "before": dict(self.before),
            "after": dict(self.after),
            "catalogue": self.catalogue.to_json(),
            "attempt": self.attempt,
            "maximum": self.maximum,
            "remaining": self.remaining,
            "model": None if self.model is None else self.model.to_json(),
            "proposal_schema": self.proposal_schema,
            "stop_reason": None if self.stop_reason is None else str(self.stop_reason),
        }
