"""Repair receipts: what a proposer may mend of an attempt, or why it may mend no more.

A part of a `case-decision/1`, on `repairs` and on `review`; a reader ignores fields that it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, with_config
from ticketgate.codecs.records.pieces import CatalogueDocument, CatalogueRef
from ticketgate.codecs.records.proposal import (
    PROPOSAL_SCHEMA,
    ProposerModel,
    WrittenModelDocument,
    read_model,
)
from ticketgate.codecs.values.shape import IGNORE_UNKNOWN
from ticketgate.codecs.values.strict import JsonValue
from typing_extensions import TypedDict

__all__ = ["RepairDocument", "RepairReceipt", "StopReason", "read_repair"]


class StopReason(StrEnum):
    """Why a repair goes no further."""

    REPAIRED = "repaired"
    NOT_REPAIRABLE = "not_repairable"
    UNPERMITTED_CHANGE = "unpermitted_change"
    OSCILLATION = "oscillation"
    BUDGET_EXHAUSTED = "budget_exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReceipt:
    """What a proposer may mend of one attempt, or why it may mend no more.

    stage, codes: the failed layer and what it said. source_of_truth: where `anchors`, the authoritative values of
    the permitted fields, come from. before, after: the changed parts of the call since the attempt before, by
    field; empty for a first attempt. model: who proposed, if it said. proposal_schema: the version that the proposal
    was read by. maximum: repairs of this stage that a case has; remaining: what is left with this one granted.
    stop_reason: None while the repair goes on.
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
        """The receipt as a JSON object in the wire's field order."""
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


@with_config(IGNORE_UNKNOWN)
class RepairDocument(TypedDict):
    stage: str
    codes: list[str]
    source_of_truth: str
    permitted: Annotated[list[str], Field(description="the fields that may change, and no others")]
    anchors: Annotated[dict[str, Any], Field(description="authoritative values of permitted fields")]
    before: dict[str, Any]
    after: dict[str, Any]
    catalogue: CatalogueDocument
    attempt: Annotated[int, Field(ge=1)]
    maximum: Annotated[int, Field(ge=0)]
    remaining: Annotated[int, Field(ge=0)]
    model: WrittenModelDocument | None
    proposal_schema: str
    stop_reason: Annotated[StopReason, Field(strict=False)] | None


def read_repair(checked: RepairDocument) -> RepairReceipt:
    """The receipt that a checked document is."""
    return RepairReceipt(
        stage=checked["stage"],
        codes=tuple(checked["codes"]),
        source_of_truth=checked["source_of_truth"],
        permitted=tuple(checked["permitted"]),
        anchors=checked["anchors"],
        before=checked["before"],
        after=checked["after"],
        catalogue=CatalogueRef(**checked["catalogue"]),
        attempt=checked["attempt"],
        maximum=checked["maximum"],
        remaining=checked["remaining"],
        model=None if checked["model"] is None else read_model(checked["model"]),
        proposal_schema=checked["proposal_schema"],
        stop_reason=checked["stop_reason"],
    )
