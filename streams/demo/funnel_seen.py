"""What the funnel's topics say of each attempt, and whether all of it is there.

Promise: only what a read_committed reader sees counts. An attempt is told of once its decision, its receipt, and what
became of each effect that it asked for can be seen; and for an effect that was not done, the copy in `review`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ticketgate.codecs.records.case_decision import CaseDecision, read_case_decision
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.receipt import (
    RECEIPT_SCHEMA,
    DecisionReceipt,
    EffectReceipt,
    EffectState,
    read_receipt,
)
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import decode
from ticketgate.codecs.verdict import Status, Verdict
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.topic_reading import read_whole

SETTLED = (EffectState.COMMITTED, EffectState.REJECTED)

Attempt = tuple[str, int]
"""A case's id and the attempt's number."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, where it went, and where it lies there."""

    topic: str
    at: Coordinate
    decision: CaseDecision


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that the outputs hold. effects, reviewed: by the dispatched record that asked for the effect."""

    decisions: dict[Attempt, list[Decided]] = field(default_factory=lambda: defaultdict(list))
    judged: set[Attempt] = field(default_factory=set)
    effects: dict[Coordinate, list[EffectReceipt]] = field(default_factory=lambda: defaultdict(list))
    reviewed: dict[Coordinate, list[EffectReceipt]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is known of an attempt. went_to: the topic of its decision; empty where there is none yet. effect: the
    newest receipt of the effect that it asked for. verdict: the effect's if that has one, else the decision's."""

    attempt: Attempt
    went_to: str = ""
    decision: CaseDecision | None = None
    effect: EffectReceipt | None = None
    is_told: bool = False
    is_effect_reviewed: bool = False
    decisions: int = 0

    @property
    def verdict(self) -> Verdict | None:
        """How it ended, as far as is known."""
        if self.effect is not None and self.effect.verdict is not None:
            return self.effect.verdict
        return None if self.decision is None else self.decision.verdict

    @property
    def asks_for_effect(self) -> bool:
        """Whether its decision has an effect."""
        return self.decision is not None and bool(self.decision.effects)


async def look(settings: Settings) -> Seen:
    """Read the outputs from the beginning. Raises what the broker raises, and ValueError for a record that is none of
    ours."""
    seen = Seen()
    topics = (
        settings.topic_dispatch,
        settings.topic_review,
        settings.topic_repairs,
        settings.topic_receipts,
    )
    async for record in read_whole(connection_of(settings), topics):
        at = Coordinate(record.topic, record.partition, record.offset)
        found = _read(record.value or b"")
        match found:
            case CaseDecision():
                decided = Decided(record.topic, at, found)
                seen.decisions[found.case_id, found.attempt].append(decided)
            case DecisionReceipt():
                seen.judged.add((found.case_id, found.attempt))
            case EffectReceipt() if found.source is not None:
                told = seen.reviewed if record.topic == settings.topic_review else seen.effects
                told[found.source].append(found)
            case EffectReceipt() | Malformed():
                raise ValueError(f"{at} is no record of a case: {found}")
    return seen


def outcome_of(attempt: Attempt, seen: Seen) -> Outcome:
    """What the outputs say of an attempt."""
    decisions = seen.decisions.get(attempt, [])
    if not decisions:
        return Outcome(attempt=attempt)
    first = decisions[0]
    receipts = seen.effects.get(first.at, [])
    effect = max(receipts, key=lambda each: each.sequence, default=None)
    is_effect_reviewed = first.at in seen.reviewed
    is_told = attempt in seen.judged
    if first.decision.effects:
        is_told = is_told and effect is not None and effect.effect_state in SETTLED
        if effect is not None and effect.verdict is not None and effect.verdict.status is not Status.ACCEPT:
            is_told = is_told and is_effect_reviewed
    return Outcome(
        attempt=attempt,
        went_to=first.topic,
        decision=first.decision,
        effect=effect,
        is_told=is_told,
        is_effect_reviewed=is_effect_reviewed,
        decisions=len(decisions),
    )


def _read(value: bytes) -> CaseDecision | DecisionReceipt | EffectReceipt | Malformed:
    document = decode(value, is_our_own=True)
    if isinstance(document, Malformed):
        return document
    if isinstance(document, dict) and document.get("schema") == RECEIPT_SCHEMA:
        return read_receipt(document)
    return read_case_decision(document)
