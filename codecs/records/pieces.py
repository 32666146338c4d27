"""Pieces that several records are made of, such as verdict and effect: as values, as JSON, as checked documents.

Promise: a piece has one spelling, whichever record it stands in. Its readers ignore fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, Field, WithJsonSchema, with_config
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.shape import IGNORE_UNKNOWN
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.times import parse_rfc3339, require_rfc3339, rfc3339
from ticketgate.codecs.verdict import Stage, Status, Verdict
from typing_extensions import TypedDict

__all__ = [
    "CatalogueDocument",
    "CatalogueRef",
    "CoordinateDocument",
    "Effect",
    "EffectDocument",
    "EvidenceDocument",
    "Moment",
    "VerdictDocument",
    "coordinate_json",
    "effects_json",
    "moment_json",
    "read_coordinate",
    "read_effects",
    "read_evidence",
    "read_moment",
    "read_verdict",
    "verdict_json",
]

# A moment on the wire, kept as it came.
Moment = Annotated[
    str, AfterValidator(require_rfc3339), WithJsonSchema({"type": "string", "format": "date-time"})
]


@dataclass(frozen=True, slots=True)
class Effect:
    """What an accepted decision asks the world to do, once under its own key (`identity.effect_key`).

    confirmations: digests (`identity.confirmation_digest`) of which it uses one up; none where it needs none.
    """

    tool: str
    arguments: Mapping[str, JsonValue]
    idempotency_key: str
    confirmations: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The effect as a JSON object; confirmations only if there are any."""
        told: dict[str, JsonValue] = {
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "idempotency_key": self.idempotency_key,
        }
        return {**told, "confirmations": [*self.confirmations]} if self.confirmations else told


@dataclass(frozen=True, slots=True)
class CatalogueRef:
    """Which catalogue was offered: its name and version, and the SHA-256 (hex) of what was published."""

    name: str
    version: str
    hash: str

    def to_json(self) -> dict[str, JsonValue]:
        """The reference as a JSON object."""
        return {"name": self.name, "version": self.version, "hash": self.hash}


@with_config(IGNORE_UNKNOWN)
class CatalogueDocument(TypedDict):
    name: str
    version: str
    hash: str


@with_config(IGNORE_UNKNOWN)
class VerdictDocument(TypedDict):
    status: Annotated[Status, Field(strict=False)]
    stage: Annotated[Stage, Field(strict=False)]
    reasons: list[str]
    next_step: str


@with_config(IGNORE_UNKNOWN)
class EffectDocument(TypedDict):
    tool: str
    arguments: dict[str, Any]
    idempotency_key: str
    confirmations: NotRequired[
        Annotated[list[str], Field(description="digests of people's confirmations, of which it uses one up")]
    ]


@with_config(IGNORE_UNKNOWN)
class EvidenceDocument(TypedDict):
    authority: Annotated[dict[str, Any] | None, Field(description="null: nothing is known of the actor")]
    world: dict[str, Any]
    unreadable: NotRequired[Annotated[list[str], Field(description="answers that were no evidence, and why")]]


@with_config(IGNORE_UNKNOWN)
class CoordinateDocument(TypedDict):
    topic: str
    partition: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]


def verdict_json(verdict: Verdict) -> dict[str, JsonValue]:
    """A verdict as records carry it."""
    return {
        "status": str(verdict.status),
        "stage": str(verdict.stage),
        "reasons": list(verdict.reasons),
        "next_step": verdict.next_step,
    }


def read_verdict(checked: VerdictDocument) -> Verdict:
    """The verdict that a checked document is."""
    return Verdict(checked["status"], checked["stage"], tuple(checked["reasons"]), checked["next_step"])


def effects_json(effects: Iterable[Effect]) -> list[JsonValue]:
    """Effects as records carry them, in their order."""
    return [effect.to_json() for effect in effects]


def read_effects(checked: Iterable[EffectDocument]) -> tuple[Effect, ...]:
    """The effects that checked documents are."""
    return tuple(
        Effect(each["tool"], each["arguments"], each["idempotency_key"], tuple(each.get("confirmations", ())))
        for each in checked
    )


def read_evidence(checked: EvidenceDocument) -> dict[str, JsonValue]:
    """The evidence that a checked document is; `unreadable` only if anything is."""
    evidence: dict[str, JsonValue] = {"authority": checked["authority"], "world": checked["world"]}
    if "unreadable" in checked:
        evidence["unreadable"] = [*checked["unreadable"]]
    return evidence


def coordinate_json(coordinate: Coordinate) -> dict[str, JsonValue]:
    """A coordinate as records carry it."""
    return {"topic": coordinate.topic, "partition": coordinate.partition, "offset": coordinate.offset}


def read_coordinate(checked: CoordinateDocument | None) -> Coordinate | None:
    """The coordinate that a checked document is; None for none."""
    return None if checked is None else Coordinate(checked["topic"], checked["partition"], checked["offset"])


def moment_json(moment: datetime | None) -> str | None:
    """A moment as records carry it."""
    return None if moment is None else rfc3339(moment)


def read_moment(text: str | None) -> datetime | None:
    """The moment that a checked text writes; None for none. Raises ValueError if it is none."""
    return None if text is None else parse_rfc3339(text)
