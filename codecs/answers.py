"""Answers of the System One protocol: what a scorer says, checked whole before anything is decided on it.

Nothing here rounds, and nothing is renormalised: a number is judged, and later recorded, as it came. The
tolerances below are for servers that round what they send; they only say when numbers contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from ticketgate.codecs.malformed import quote, wrong_kind
from ticketgate.codecs.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.strict import JsonValue
from ticketgate.codecs.tagged import tag_non_finite

__all__ = [
    "Answer",
    "ChoiceAnswer",
    "NoulAnswer",
    "ScoreAnswer",
    "answer_confidence",
    "answer_json",
    "check_answers",
    "confidence",
    "score_tolerance",
    "sum_tolerance",
    "tag_non_finite",
]

# Servers round probabilities to four decimals (protocol notes, Ardana), so each may be off by half of the last.
ROUNDED_PROBABILITY = 0.5e-4

# ... and a score to two.
ROUNDED_SCORE = 0.5e-2

# What arithmetic in 32-bit floats leaves over in a sum of up to 255 terms.
ARITHMETIC_SLACK = 1e-5

# The reported choice must have the highest probability, exactly: rounding keeps order, so there is nothing
# to tolerate. Equal highest probabilities allow any of them.

# An answer may come with thousands of unasked ids; a reason names the first of them.
_MAX_NAMED = 16


@dataclass(frozen=True, slots=True)
class NoulAnswer:
    """noul: the probability of true, in 0..1."""

    noul: int | float
    type: Literal["noul"] = "noul"


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """choice: the label reported. probabilities: by label, in the question's order, summing to about 1."""

    choice: str
    probabilities: Mapping[str, int | float]
    type: Literal["choice"] = "choice"

    @property
    def mode(self) -> str:
        """The most probable label; of equals the earlier in the question's order."""
        return max(self.probabilities, key=lambda label: self.probabilities[label])


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """score: the expected level. probabilities: by level, "0" first, summing to about 1."""

    score: int | float
    probabilities: Mapping[str, int | float]
    type: Literal["score"] = "score"

    @property
    def mode(self) -> int:
        """The most probable level; of equals the lower."""
        return int(max(self.probabilities, key=lambda level: self.probabilities[level]))


Answer: TypeAlias = NoulAnswer | ChoiceAnswer | ScoreAnswer


def sum_tolerance(count: int) -> float:
    """How far the sum of `count` probabilities may lie from 1."""
    return count * ROUNDED_PROBABILITY + ARITHMETIC_SLACK


def score_tolerance(count: int) -> float:
    """How far a score may lie from the expectation of the `count` probabilities that came with it."""
    return ROUNDED_SCORE + ROUNDED_PROBABILITY * count * (count - 1) / 2 + ARITHMETIC_SLACK


def answer_confidence(answer: Answer, threshold: float = 0.5) -> float:
    """The probability of what is reported: the one measure that means the same for all kinds, for gating.

    noul: of the side that `threshold` selects (at or above it: true); choice: of the choice; score: of the
    most probable level. `threshold` is noul's alone.
    """
    match answer:
        case NoulAnswer():
            return answer.noul if answer.noul >= threshold else 1 - answer.noul
        case ChoiceAnswer():
            return answer.probabilities[answer.choice]
        case ScoreAnswer():
            return answer.probabilities[str(answer.mode)]
        case _:
            assert_never(answer)


def confidence(answer: Answer) -> float | None:
    """The protocol's `confidence`, for the wire only: it means another thing for each kind and server.

    choice: (n·pmax - 1)/(n - 1). score: 1 - Σ pᵢ·|i - mode| / mean|i - (n-1)/2|. noul has none. Kept within
    0..1, which sums that were rounded can leave by a little.
    """
    if isinstance(answer, NoulAnswer):
        return None
    chances = list(answer.probabilities.values())
    n = len(chances)
    if isinstance(answer, ChoiceAnswer):
        value = (n * max(chances) - 1) / (n - 1)
    else:
        spread = math.fsum(p * abs(level - answer.mode) for level, p in enumerate(chances))
        uniform = math.fsum(abs(level - (n - 1) / 2) for level in range(n)) / n
        value = 1 - spread / uniform
    return min(1.0, max(0.0, value))


def answer_json(question: Question, answer: Answer) -> dict[str, JsonValue]:
    """The answer as the protocol writes it, with our `x_answer_confidence` at the threshold 0.5.

    Raises ValueError if the answer is of another kind than the question.
    """
    record: dict[str, JsonValue]
    if isinstance(question, NoulQuestion) and isinstance(answer, NoulAnswer):
        record = {"type": "noul", "noul": answer.noul}
    elif isinstance(question, ChoiceQuestion) and isinstance(answer, ChoiceAnswer):
        record = {
            "type": "choice",
            "choice": answer.choice,
            "confidence": confidence(answer),
            "probabilities": dict(answer.probabilities),
        }
    elif isinstance(question, ScoreQuestion) and isinstance(answer, ScoreAnswer):
        record = {
            "type": "score",
            "score": answer.score,
            "confidence": confidence(answer),
            "legend": dict(zip(question.labels, question.criteria, strict=True)),
            "probabilities": dict(answer.probabilities),
        }
    else:
        raise ValueError(f"an answer of type {answer.type} to a question of type {question.type}")
    return record | {"x_answer_confidence": answer_confidence(answer)}


def check_answers(questions: Mapping[str, Question], raw: object) -> dict[str, Answer] | tuple[str, ...]:
    """The answers by question id in the questions' order, or every reason why they cannot be used.

    raw: what a scorer gave, an object from question id to answer, of which nothing is trusted. Exactly the
    asked ids; the right type; exactly the options or levels asked; finite numbers in 0..1 (1 and 0 may be
    integers, -0.0 is zero, true and false are not numbers); sum, choice and score in agreement within
    `sum_tolerance`, exactly, and within `score_tolerance`. A server's own `confidence` and `legend` may be
    left out, since nothing is decided on them; where they stand they must be a number in 0..1 and the levels
    as asked. Other fields of an answer are ignored.
    """
    if not isinstance(raw, Mapping):
        return (f"answers must be an object from question id to answer, not {wrong_kind(raw)}",)
    answers: dict[str, Answer] = {}
    reasons: list[str] = []
    for question_id, question in questions.items():
        if question_id not in raw:
            found: Answer | list[str] = ["no answer"]
        elif (plain := _plain_noul(question, raw[question_id])) is not None:
            found = plain
        else:
            found = _check_answer(question, raw[question_id])
        if isinstance(found, list):
            reasons.extend(f"question {quote(question_id)}: {reason}" for reason in found)
        else:
            answers[question_id] = found
    unasked = [str(question_id) for question_id in raw if question_id not in questions]
    reasons.extend(
        f"question {quote(question_id)}: answered but not asked" for question_id in unasked[:_MAX_NAMED]
    )
    if len(unasked) > _MAX_NAMED:
        reasons.append(f"{len(unasked) - _MAX_NAMED} more answered but not asked")
    return tuple(reasons) if reasons else answers


def _plain_noul(question: Question, raw: object) -> NoulAnswer | None:
    """The answer, if it is a noul as nearly all are; None if it has to be looked at closely.

    A policy may ask forty of them of every ticket, and this takes a third of the time.
    """
    if type(question) is not NoulQuestion or type(raw) is not dict or raw.get("type") != "noul":
        return None
    noul = raw.get("noul")
    return NoulAnswer(noul) if type(noul) is float and 0 <= noul <= 1 else None


def _check_answer(question: Question, raw: object) -> Answer | list[str]:
    """The answer, or what is wrong with it."""
    # dict before Mapping, which takes ten times as long to ask: this runs over every answer of every ticket.
    if not isinstance(raw, (dict, Mapping)):
        return [f"the answer must be an object, not {wrong_kind(raw)}"]
    kind = raw.get("type")
    if kind != question.type:
        given = quote(kind) if isinstance(kind, str) else wrong_kind(kind) if "type" in raw else "missing"
        return [f"type must be {quote(question.type)}, not {given}"]
    match question:
        case NoulQuestion():
            noul = _probability("noul", raw.get("noul"))
            return [noul] if isinstance(noul, str) else NoulAnswer(noul)
        case ChoiceQuestion():
            return _check_choice(question, raw)
        case ScoreQuestion():
            return _check_score(question, raw)
        case _:
            assert_never(question)


def _check_choice(question: ChoiceQuestion, raw: Mapping[object, object]) -> Answer | list[str]:
    probabilities = _distribution("option", question.labels, raw.get("probabilities"))
    reasons = probabilities if isinstance(probabilities, list) else []
    choice = raw.get("choice")
    if not isinstance(choice, str):
        reasons.append(f"choice must be one of the options, not {wrong_kind(choice)}")
    elif choice not in question.criteria:
        reasons.append(f"choice {quote(choice)} is none of the options")
    elif not isinstance(probabilities, list):
        answer = ChoiceAnswer(choice, probabilities)
        if probabilities[choice] < probabilities[answer.mode]:
            reasons.append(
                f"choice {quote(choice)} ({probabilities[choice]!r}) is less probable than "
                f"{quote(answer.mode)} ({probabilities[answer.mode]!r})"
            )
        reasons += _check_confidence(raw)
        if not reasons:
            return answer
    return reasons


def _check_score(question: ScoreQuestion, raw: Mapping[object, object]) -> Answer | list[str]:
    probabilities = _distribution("level", question.labels, raw.get("probabilities"))
    reasons = probabilities if isinstance(probabilities, list) else []
    score = _number("score", raw.get("score"), top=len(question.criteria) - 1)
    if isinstance(score, str):
        reasons.append(score)
    elif not isinstance(probabilities, list):
        expected = math.fsum(level * p for level, p in enumerate(probabilities.values()))
        if abs(score - expected) > score_tolerance(len(probabilities)):
            reasons.append(f"score {score!r} is not the expectation of its probabilities, {expected!r}")
        if "legend" in raw and raw["legend"] != dict(zip(question.labels, question.criteria, strict=True)):
            reasons.append("legend is not that of the levels asked")
        reasons += _check_confidence(raw)
        if not reasons:
            return ScoreAnswer(score, probabilities)
    return reasons


def _check_confidence(raw: Mapping[object, object]) -> list[str]:
    if "confidence" not in raw:
        return []
    value = _probability("confidence", raw["confidence"])
    return [value] if isinstance(value, str) else []


def _distribution(what: str, labels: tuple[str, ...], raw: object) -> dict[str, int | float] | list[str]:
    """The probabilities in the order of `labels`, or what is wrong with them."""
    if not isinstance(raw, Mapping):
        return [f"probabilities must be an object, not {wrong_kind(raw)}"]
    reasons: list[str] = []
    probabilities: dict[str, int | float] = {}
    for label in labels:
        if label not in raw:
            reasons.append(f"no probability for {what} {quote(label)}")
            continue
        value = _probability(f"the probability of {quote(label)}", raw[label])
        if isinstance(value, str):
            reasons.append(value)
        else:
            probabilities[label] = value
    known = set(labels)
    unknown = [str(label) for label in raw if label not in known]
    reasons.extend(f"a probability for {quote(label)}, which is no {what}" for label in unknown[:_MAX_NAMED])
    if len(unknown) > _MAX_NAMED:
        reasons.append(f"{len(unknown) - _MAX_NAMED} more probabilities for what is no {what}")
    if reasons:
        return reasons
    total = math.fsum(probabilities.values())
    if abs(total - 1) > sum_tolerance(len(labels)):
        return [f"probabilities sum to {total!r}, not 1"]
    return probabilities


def _probability(what: str, value: object) -> int | float | str:
    return _number(what, value, top=1)


def _number(what: str, value: object, *, top: int) -> int | float | str:
    """`value` if it is a finite number in 0..top, else what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{what} must be a number from 0 to {top}, not {wrong_kind(value)}"
    if not 0 <= value <= top:  # NaN is neither
        return f"{what} must be from 0 to {top}, not {_shown(value)}"
    # The same number without its subclass: a record could not be written with a numpy.float64 in it.
    return float(value) if isinstance(value, float) else int(value)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return wrong_kind(value)
