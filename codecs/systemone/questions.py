"""Questions of the System One protocol: what a policy or a request may ask.

Three kinds: noul (is it true), choice (which one), score (which level). A description or
instruction is text, an object or an array; where the protocol allows it, null.

A question may have `values`: what each of its answers is called by who asks, in its own JSON type (1 to 3, 10, null).
They are ours alone: the protocol knows labels and levels from 0, and over the wire goes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.texts import same

__all__ = [
    "MAX_OPTIONS",
    "MAX_SCORE_LEVELS",
    "MAX_SHORTLISTED",
    "MIN_OPTIONS",
    "MIN_SCORE_LEVELS",
    "ChoiceQuestion",
    "NoulQuestion",
    "Question",
    "QuestionError",
    "ScoreQuestion",
    "name_of",
]

MIN_OPTIONS, MAX_OPTIONS = 2, 255
# Before a shortlist is made. Labels are embedded once, about a thousand a second.
MAX_SHORTLISTED = 10_000
MIN_SCORE_LEVELS, MAX_SCORE_LEVELS = 2, 10


@dataclass(frozen=True, slots=True)
class NoulQuestion:
    """Is it true. `when_true` and `when_false` describe the sides; either or both may be None."""

    instructions: JsonValue = None
    when_true: JsonValue = None
    when_false: JsonValue = None
    values: tuple[JsonValue, ...] | None = None
    type: Literal["noul"] = "noul"

    @property
    def labels(self) -> tuple[str, ...]:
        """Always false, true: the order of a model's outputs, whatever the criteria's."""
        return ("false", "true")

    def to_json(self) -> dict[str, JsonValue]:
        """The question as the protocol writes it; `read_question` gives it back."""
        criteria = {"true": self.when_true, "false": self.when_false}
        kept: dict[str, JsonValue] = {side: text for side, text in criteria.items() if text is not None}
        return _question_json(self.type, self.instructions, kept or None)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ChoiceQuestion:
    """Which one. `criteria` gives 2 to 255 options in order, each label with its description or None.

    shortlist: only the so many options nearest to the ticket are asked about, of which there may then be up to
    MAX_SHORTLISTED in all. It is for the scorer alone and does not go over the wire.
    values: one a label, which is how it is written; without them a label is its own value.
    """

    instructions: JsonValue
    criteria: Mapping[str, JsonValue]
    shortlist: int | None = None
    values: tuple[JsonValue, ...] | None = None
    type: Literal["choice"] = "choice"

    @property
    def labels(self) -> tuple[str, ...]:
        """The options' labels in the order given."""
        return tuple(self.criteria)

    @property
    def names(self) -> tuple[str, ...]:
        """How an assignment writes each label: as it is."""
        return self.labels

    @property
    def meant(self) -> tuple[JsonValue, ...]:
        """What each label stands for, in the labels' order."""
        return self.labels if self.values is None else self.values

    def to_json(self) -> dict[str, JsonValue]:
        """The question as the protocol writes it; `read_question` gives it back."""
        return _question_json(self.type, self.instructions, dict(self.criteria))


@dataclass(frozen=True, slots=True)
class ScoreQuestion:
    """Which level. `criteria` describes 2 to 10 levels, the lowest first; a level is its place from 0.

    values: rising whole numbers, one a level, which rules, effects and records call it by instead of its place.
    """

    instructions: JsonValue
    criteria: tuple[JsonValue, ...]
    values: tuple[JsonValue, ...] | None = None
    type: Literal["score"] = "score"

    @property
    def levels(self) -> tuple[int, ...]:
        """0, 1, … as numbers."""
        return tuple(range(len(self.criteria)))

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels as the keys of an answer's probabilities: "0", "1", …"""
        return tuple(str(level) for level in self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """How an assignment writes each level: its own value, or its place."""
        return tuple(str(each) for each in self.meant)

    @property
    def meant(self) -> tuple[JsonValue, ...]:
        """What each level stands for: its own value, or its place."""
        return self.levels if self.values is None else self.values

    def to_json(self) -> dict[str, JsonValue]:
        """The question as the protocol writes it; `read_question` gives it back."""
        return _question_json(self.type, self.instructions, list(self.criteria))


Question: TypeAlias = NoulQuestion | ChoiceQuestion | ScoreQuestion


class QuestionError(ValueError):
    """A question that cannot be asked. Who wrote the request or the policy must mend it.

    question_id: which one, or None if the questions as a whole are wrong. part: the offending field
    (`type`, `instructions`, `criteria`), or None. reason: what it must be.
    """

    def __init__(self, question_id: str | None, reason: str, *, part: str | None = None) -> None:
        super().__init__(reason if question_id is None else f"question {quote(question_id)}: {reason}")
        self.question_id = question_id
        self.part = part
        self.reason = reason


def name_of(question: ChoiceQuestion | ScoreQuestion, value: JsonValue) -> str | None:
    """How an assignment writes the label or level that stands for `value`, type and all, and texts by how they read;
    None if none does."""
    for name, each in zip(question.names, question.meant, strict=True):
        if isinstance(each, bool) is isinstance(value, bool) and each == value:
            return name
    if not isinstance(value, str):
        return None
    # Only now: where two labels read the same, the one that is spelled so is meant.
    for name, each in zip(question.names, question.meant, strict=True):
        if isinstance(each, str) and same(each) == same(value):
            return name
    return None


def _question_json(kind: str, instructions: JsonValue, criteria: JsonValue) -> dict[str, JsonValue]:
    record: dict[str, JsonValue] = {"type": kind}
    if instructions is not None:
        record["instructions"] = instructions
    if criteria is not None:
        record["criteria"] = criteria
    return record
