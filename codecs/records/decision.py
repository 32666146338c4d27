"""Decision records: what the gate wrote about a ticket, to `dispatch` or `review`.

Field order is part of the form and stays. Readers ignore fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter
from ticketgate.codecs.records.decision_document import DecisionDocument, SettledByPersonDocument
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.pieces import (
    Effect,
    coordinate_json,
    effects_json,
    read_effects,
    read_verdict,
    verdict_json,
)
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.malformed import Malformed, wrong_kind
from ticketgate.codecs.values.shape import read_written
from ticketgate.codecs.values.strict import JsonValue, encode
from ticketgate.codecs.values.times import parse_rfc3339, rfc3339, to_milliseconds
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage, Status, Verdict

__all__ = [
    "DECISION_SCHEMA",
    "DecisionDocument",
    "DecisionRecord",
    "Effect",
    "ModelRef",
    "PolicyRef",
    "Probability",
    "SettledByPerson",
    "Violation",
    "read_decision",
]

# noul: the probability of true. choice and score: by label or level.
Probability = int | float | Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the assignment breaks: the rule's id and its message."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class ModelRef:
    """Which model answered: its id, and the SHA-256 (hex) of what it is made of."""

    id: str
    hash: str


@dataclass(frozen=True, slots=True)
class PolicyRef:
    """Which policy judged: its name and version, and the SHA-256 (hex) of its canonical document."""

    name: str
    version: str
    hash: str

    def to_json(self) -> dict[str, JsonValue]:
        """The reference as a JSON object."""
        return {"name": self.name, "version": self.version, "hash": self.hash}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledByPerson:
    """That a person decided, and on which record in `review`.

    settlement: its id. by: a pseudonym. at: when the person decided. review, review_sha256: that record, and the
    SHA-256 of its value. reviewed: the verdict that it had. selected: the labels that it had.
    """

    settlement: str
    by: str
    at: datetime
    review: Coordinate
    review_sha256: str
    reviewed: Verdict
    selected: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The block as a JSON object."""
        return {
            "settlement": self.settlement,
            "by": self.by,
            "at": rfc3339(self.at),
            "review": coordinate_json(self.review),
            "review_sha256": self.review_sha256,
            "reviewed": verdict_json(self.reviewed),
            "selected": list(self.selected),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision, the same in `dispatch` and `review`.

    ticket_id: also the record's key. selected: sorted labels. values: what of it has values of its own (those of a
    JSON Schema), in their types; written only if there are any. probabilities: exactly as scored. answers: raw,
    made writable by `tagged.tag_non_finite`. truncated: ids of questions whose model did not read the whole
    state; written only if there are any. effects: empty unless accepted. idempotency_key: the claimed key, or
    one derived from it. decided_at: given by the caller from the record, never a worker's clock; kept in
    milliseconds. ticket: for review, and in dispatch if a setting asks; None leaves it out. settled: where a person
    decided, whose labels `selected` has then; probabilities and answers are the model's all the same.
    Raises ValueError for a contradiction: effects without acceptance, labels unsorted, a time without zone.
    """

    ticket_id: str
    tenant: str = ""
    verdict: Verdict
    selected: tuple[str, ...] = ()
    values: Mapping[str, JsonValue] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    probabilities: Mapping[str, Probability]
    answers: JsonValue
    truncated: tuple[str, ...] = ()
    policy: PolicyRef
    model: ModelRef
    effects: tuple[Effect, ...] = ()
    idempotency_key: IdempotencyKey
    fingerprint: Fingerprint
    coordinate: Coordinate
    decided_at: datetime
    ticket: Mapping[str, JsonValue] | None = None
    settled: SettledByPerson | None = None

    def __post_init__(self) -> None:
        if self.effects and self.verdict.status is not Status.ACCEPT:
            raise ValueError(f"ticket {self.ticket_id!r}: effects on a decision of {self.verdict.status}")
        if list(self.selected) != sorted(self.selected):
            raise ValueError(
                f"ticket {self.ticket_id!r}: selected labels must be sorted, not {self.selected}"
            )
        object.__setattr__(self, "decided_at", to_milliseconds(self.decided_at))

    def to_json(self) -> dict[str, JsonValue]:
        """The record as a JSON object in the wire's field order."""
        record: dict[str, JsonValue] = {
            "schema": DECISION_SCHEMA,
            "ticket_id": self.ticket_id,
            "tenant": self.tenant,
            "verdict": verdict_json(self.verdict),
            "selected": list(self.selected),
        }
        if self.values:
            record["values"] = dict(self.values)
        model = self.model
        record["violations"] = [
            {"rule": broken.rule, "message": broken.message} for broken in self.violations
        ]
        record["probabilities"] = {
            question: chance if isinstance(chance, (float, int)) else dict(chance)
            for question, chance in self.probabilities.items()
        }
        record["answers"] = self.answers
        if self.truncated:
            record["truncated"] = list(self.truncated)
        record["policy"] = self.policy.to_json()
        record["model"] = {"id": model.id, "hash": model.hash}
        record["effects"] = effects_json(self.effects)
        record["idempotency_key"] = self.idempotency_key
        record["fingerprint"] = self.fingerprint
        record["coordinate"] = coordinate_json(self.coordinate)
        record["decided_at"] = rfc3339(self.decided_at)
        if self.ticket is not None:
            record["ticket"] = dict(self.ticket)
        if self.settled is not None:
            record["settled"] = self.settled.to_json()
        return record

    def encode(self) -> bytes:
        """The record's bytes. Raises ValueError if a number is not finite or anything else is not JSON."""
        return encode(self.to_json())


@cache
def _check() -> TypeAdapter[DecisionDocument]:
    """Built at first use: it takes tens of milliseconds, which no command should wait for at its start."""
    return TypeAdapter(DecisionDocument)


def _read_version_1(value: dict[str, JsonValue]) -> DecisionRecord | Malformed:
    fields = DecisionDocument.__annotations__
    return read_written(value, _check(), _made, fields=fields, schema="decision/1")


def _made(checked: DecisionDocument) -> DecisionRecord:
    return DecisionRecord(
        ticket_id=checked["ticket_id"],
        tenant=checked["tenant"],
        verdict=read_verdict(checked["verdict"]),
        selected=tuple(checked["selected"]),
        values=checked.get("values", {}),
        violations=tuple(Violation(**broken) for broken in checked["violations"]),
        probabilities=checked["probabilities"],
        answers=checked["answers"],
        truncated=tuple(checked.get("truncated", ())),
        policy=PolicyRef(**checked["policy"]),
        model=ModelRef(**checked["model"]),
        effects=read_effects(checked["effects"]),
        idempotency_key=IdempotencyKey(checked["idempotency_key"]),
        fingerprint=Fingerprint(checked["fingerprint"]),
        coordinate=Coordinate(**checked["coordinate"]),
        decided_at=parse_rfc3339(checked["decided_at"]),
        ticket=checked.get("ticket"),
        settled=_settled(checked["settled"]) if "settled" in checked else None,
    )


def _settled(checked: SettledByPersonDocument) -> SettledByPerson:
    return SettledByPerson(
        settlement=checked["settlement"],
        by=checked["by"],
        at=parse_rfc3339(checked["at"]),
        review=Coordinate(**checked["review"]),
        review_sha256=checked["review_sha256"],
        reviewed=read_verdict(checked["reviewed"]),
        selected=tuple(checked["selected"]),
    )


_VERSIONS: Versions[DecisionRecord] = Versions("decision", {1: _read_version_1})

DECISION_SCHEMA = _VERSIONS.current


def read_decision(value: JsonValue) -> DecisionRecord | Malformed:
    """The record that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"a decision is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)
