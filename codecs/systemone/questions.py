"""Questions of the System One protocol: what a policy or a request may ask, checked before any tokenising.

Three kinds: noul (is it true), choice (which one), score (which level). A description or
instruction is text, an object or an array; where the protocol allows it, null.

A question may have `values`: what each of its answers is called by who asks, in its own JSON type (1 to 3, 10, null).
They are ours alone: the protocol knows labels and levels from 0, and over the wire goes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

from ticketgate.codecs.values.malformed import first_few, quote, shorten, wrong_kind
from ticketgate.codecs.values.strict import JsonValue, encode

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
    "read_question",
    "read_questions",
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


@dataclass(frozen=True, slots=True)
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


def read_questions(
    value: object, *, unknown_fields: Literal["refuse", "ignore"] = "refuse"
) -> dict[str, Question]:
    """The questions by id, in the order given. Raises QuestionError at the first that cannot be asked.

    value: an object from question id to question. unknown_fields: a policy refuses fields that it does not
    know, the endpoint ignores them as the protocol asks.
    """
    if not isinstance(value, Mapping):
        raise QuestionError(None, f"questions must be an object from id to question, not {wrong_kind(value)}")
    if not value:
        raise QuestionError(None, "questions must hold at least one question")
    return {
        _question_id(question_id): read_question(question_id, question, unknown_fields=unknown_fields)
        for question_id, question in value.items()
    }


def read_question(
    question_id: str,
    value: object,
    *,
    unknown_fields: Literal["refuse", "ignore"] = "refuse",
    shortlist: int | None = None,
    values: Sequence[JsonValue] | None = None,
) -> Question:
    """One question. Raises QuestionError with its id and the part that is wrong.

    shortlist: of a choice, ask only about so many options; it may then have more than MAX_OPTIONS. values: what its
    answers are called by who asks.
    """
    question = _read_question(question_id, value, unknown_fields, shortlist)
    return question if values is None else _with_values(question_id, question, tuple(values))


def name_of(question: ChoiceQuestion | ScoreQuestion, value: JsonValue) -> str | None:
    """How an assignment writes the label or level that stands for `value`, type and all; None if none does."""
    for name, each in zip(question.names, question.meant, strict=True):
        if isinstance(each, bool) is isinstance(value, bool) and each == value:
            return name
    return None


def _read_question(
    question_id: str, value: object, unknown_fields: Literal["refuse", "ignore"], shortlist: int | None
) -> Question:
    if shortlist is not None:
        _require_shortlist(question_id, value, shortlist)
    if not isinstance(value, Mapping):
        raise QuestionError(question_id, f"must be an object, not {wrong_kind(value)}")
    if unknown_fields == "refuse":
        _require_known_fields(question_id, value)
    instructions = value.get("instructions")
    if instructions is not None and not _is_text(instructions):
        raise QuestionError(
            question_id,
            f"instructions must be text, an object, an array or null, not {wrong_kind(instructions)}",
            part="instructions",
        )
    criteria = value.get("criteria")
    match value.get("type"):
        case "noul":
            return _noul(question_id, cast("JsonValue", instructions), criteria)
        case "choice":
            return _choice(question_id, cast("JsonValue", instructions), criteria, shortlist)
        case "score":
            return _score(question_id, cast("JsonValue", instructions), criteria)
        case other:
            given = quote(other) if isinstance(other, str) else wrong_kind(other)
            if "type" not in value:
                given = "missing"
            raise QuestionError(question_id, f"type must be noul, choice or score, not {given}", part="type")


def _with_values(question_id: str, question: Question, values: tuple[JsonValue, ...]) -> Question:
    def wrong(reason: str) -> QuestionError:
        return QuestionError(question_id, reason, part="values")

    if len(values) != len(question.labels):
        noun = "levels" if isinstance(question, ScoreQuestion) else "labels"
        raise wrong(f"values must be as many as its {noun}, {len(question.labels)}, not {len(values)}")
    match question:
        case NoulQuestion():
            if values[0] is not False or values[1] is not True:
                raise wrong("values of a noul are false, true")
        case ChoiceQuestion():
            for label, value in zip(question.labels, values, strict=True):
                if isinstance(value, (dict, list)) or label != _written(value):
                    raise wrong(f"the value of label {quote(label)} must be written as the label is")
        case ScoreQuestion() if not _rises(values):
            raise wrong("values of a score must be whole numbers that rise from level to level")
        case ScoreQuestion():
            pass
    return replace(question, values=values)


def _rises(values: tuple[JsonValue, ...]) -> bool:
    whole = [each for each in values if isinstance(each, int) and not isinstance(each, bool)]
    return len(whole) == len(values) and whole == sorted(set(whole))


def _written(value: JsonValue) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _noul(question_id: str, instructions: JsonValue, criteria: object) -> NoulQuestion:
    if criteria is None:
        criteria = {}
    if not isinstance(criteria, Mapping) or not set(criteria) <= {"true", "false"}:
        given = wrong_kind(criteria)
        if isinstance(criteria, Mapping):
            others = (quote(str(key)) for key in criteria if key not in ("true", "false"))
            given = "with " + ", ".join(first_few(others, most=4))
        raise _wrong_criteria(
            question_id, f"noul criteria must be an object of true and false alone, not {given}"
        )
    for side, text in criteria.items():
        if text is not None and not _is_text(text):
            raise _wrong_description(question_id, f"noul criteria {side}", text, ", an array or null")
    question = NoulQuestion(instructions, criteria.get("true"), criteria.get("false"))
    if question.when_true is question.when_false is instructions is None:
        raise _wrong_criteria(
            question_id, "a noul without instructions must describe true or false in its criteria"
        )
    return question


def _require_known_fields(question_id: str, value: Mapping[object, object]) -> None:
    for name in value:
        if name not in ("type", "instructions", "criteria"):
            raise QuestionError(question_id, f"unknown field {quote(str(name))}", part=shorten(str(name)))


def _require_shortlist(question_id: str, value: object, shortlist: int) -> None:
    if isinstance(value, Mapping) and value.get("type") != "choice":
        raise QuestionError(question_id, "only a choice can have a shortlist", part="shortlist")
    if not MIN_OPTIONS <= shortlist <= MAX_OPTIONS:
        raise QuestionError(
            question_id,
            f"shortlist must be from {MIN_OPTIONS} to {MAX_OPTIONS}, not {shortlist}",
            part="shortlist",
        )


def _choice(
    question_id: str, instructions: JsonValue, criteria: object, shortlist: int | None
) -> ChoiceQuestion:
    if not isinstance(criteria, Mapping):
        raise _wrong_criteria(
            question_id,
            f"choice criteria must be an object from label to description, not {wrong_kind(criteria)}",
        )
    most = MAX_OPTIONS if shortlist is None else MAX_SHORTLISTED
    if not MIN_OPTIONS <= len(criteria) <= most:
        raise _wrong_criteria(
            question_id,
            f"choice criteria must have {MIN_OPTIONS} to {most} options, not {len(criteria)}",
        )
    for label, text in criteria.items():
        if not isinstance(label, str) or not label:
            raise _wrong_criteria(
                question_id, f"a choice's label must be text that is not empty, not {wrong_kind(label)}"
            )
        if text is not None and not _is_text(text):
            raise _wrong_description(
                question_id, f"the description of option {quote(label)}", text, ", an array or null"
            )
    return ChoiceQuestion(instructions, dict(criteria), shortlist)


def _score(question_id: str, instructions: JsonValue, criteria: object) -> ScoreQuestion:
    if not isinstance(criteria, (list, tuple)):
        raise _wrong_criteria(
            question_id,
            f"score criteria must be an array of descriptions, the lowest level first, not {wrong_kind(criteria)}",
        )
    if not MIN_SCORE_LEVELS <= len(criteria) <= MAX_SCORE_LEVELS:
        raise _wrong_criteria(
            question_id,
            f"score criteria must have {MIN_SCORE_LEVELS} to {MAX_SCORE_LEVELS} levels, not {len(criteria)}",
        )
    for level, text in enumerate(criteria):
        if not _is_text(text):
            raise _wrong_description(question_id, f"the description of level {level}", text, " or an array")
    return ScoreQuestion(instructions, tuple(criteria))


def _question_id(question_id: object) -> str:
    if not isinstance(question_id, str) or not question_id:
        raise QuestionError(
            None, f"a question's id must be text that is not empty, not {wrong_kind(question_id)}"
        )
    return question_id


def _is_text(value: object) -> bool:
    """Whether `value` can be read out to a model: text, an object or an array."""
    return isinstance(value, (str, dict, list))


def _question_json(kind: str, instructions: JsonValue, criteria: JsonValue) -> dict[str, JsonValue]:
    record: dict[str, JsonValue] = {"type": kind}
    if instructions is not None:
        record["instructions"] = instructions
    if criteria is not None:
        record["criteria"] = criteria
    return record


def _wrong_criteria(question_id: str, reason: str) -> QuestionError:
    return QuestionError(question_id, reason, part="criteria")


def _wrong_description(question_id: str, where: str, text: object, others: str) -> QuestionError:
    return _wrong_criteria(question_id, f"{where} must be text, an object{others}, not {wrong_kind(text)}")
