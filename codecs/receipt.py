"""Receipts: the evidence of what was judged, of what was done, and of what a repair changed (DESIGN section 7).

Promise: a receipt names what it rests on (versions, hashes, keys), so that it can be checked without the process
that wrote it. `kind` tells receipts apart on their topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ticketgate.codecs.proposal import Request
from ticketgate.codecs.strict import JsonValue
from ticketgate.codecs.verdict import Verdict

__all__ = [
    "CatalogueRef",
    "DecisionReceipt",
    "EffectReceipt",
    "EffectStatus",
    "RepairReceipt",
    "StopReason",
    "verdict_json",
]


class EffectStatus(StrEnum):
    """How an effect came to be known: by this command, by an earlier one under its key, or by reading back alone."""

    CREATED = "created"
    REPLAYED = "replayed"
    VERIFIED_BY_READBACK = "verified_by_readback"


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
    written, for one that asks for an effect, whose receipt is another.
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

    def to_json(self) -> dict[str, JsonValue]:
        """The receipt as a JSON object."""
        record: dict[str, JsonValue] = {
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
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectReceipt:
    """What was done, as read back: the accepted command, the provider's id, the key, the observed state."""

    status: EffectStatus
    tool: str
    arguments: Mapping[str, JsonValue]
    provider_id: str
    idempotency_key: str
    state: Mapping[str, JsonValue]

    def to_json(self) -> dict[str, JsonValue]:
        """The receipt as a JSON object."""
        return {
            "kind": "effect_receipt",
            "status": str(self.status),
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "provider_id": self.provider_id,
            "idempotency_key": self.idempotency_key,
            "state": dict(self.state),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReceipt:
    """What a proposer may mend of one attempt, or why it may mend no more.

    stage, codes: the failed layer and what it said. source_of_truth: where `anchors`, the authoritative values of
    the permitted fields, come from. before, after: the changed parts of the call since the attempt before, by
    field; empty for a first attempt. model: who proposed, if it said. maximum: repairs of this stage that a case has;
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
    model: str = ""
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
            "model": self.model,
            "stop_reason": None if self.stop_reason is None else str(self.stop_reason),
        }


def verdict_json(verdict: Verdict) -> dict[str, JsonValue]:
    """A verdict as records carry it."""
    return {
        "status": str(verdict.status),
        "stage": str(verdict.stage),
        "reasons": list(verdict.reasons),
        "next_step": verdict.next_step,
    }
