"""From what a policy or a request writes to questions, checked before any tokenising.

Promise: what comes out can be asked; anything else is refused with the question's id and the part that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from ticketgate.codecs.systemone.questions import (
    MAX_OPTIONS,
    MAX_SCORE_LEVELS,
    MAX_SHORTLISTED,
    MIN_OPTIONS,
    MIN_SCORE_LEVELS,
    ChoiceQuestion,
    NoulQuestion,
    Question,
    QuestionError,
    ScoreQuestion,
)
from ticketgate.codecs.values.malformed import first_few, quote, shorten, wrong_kind
from ticketgate.codecs.values.strict import JsonValue, encode

__all__ = ["read_question", "read_questions"]


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


def _wrong_criteria(question_id: str, reason: str) -> QuestionError:
    return QuestionError(question_id, reason, part="criteria")


def _wrong_description(question_id: str, where: str, text: object, others: str) -> QuestionError:
    return _wrong_criteria(question_id, f"{where} must be text, an object{others}, not {wrong_kind(text)}")
