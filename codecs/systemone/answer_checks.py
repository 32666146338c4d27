"""Answers from outside checked whole, before anything is decided on them.

Nothing here rounds, and nothing is renormalised: a number is judged as it came. The tolerances are for servers that
round what they send; they only say when numbers contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never

from ticketgate.codecs.systemone.answers import _MAX_REASONS, Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.malformed import first_few, quote, wrong_kind

# Servers such as Ardana round probabilities to four decimals, so each may be off by half of the last.
ROUNDED_PROBABILITY = 0.5e-4


# ... and a score to two.
ROUNDED_SCORE = 0.5e-2


# What arithmetic in 32-bit floats leaves over in a sum of up to 255 terms.
ARITHMETIC_SLACK = 1e-5


# An answer may come with thousands of unasked ids; a reason names the first of them.
_MAX_NAMED = 16


def sum_tolerance(count: int) -> float:
    """How far the sum of `count` probabilities may lie from 1."""
    return count * ROUNDED_PROBABILITY + ARITHMETIC_SLACK


def score_tolerance(count: int) -> float:
    """How far a score may lie from the expectation of the `count` probabilities that came with it."""
    return ROUNDED_SCORE + ROUNDED_PROBABILITY * count * (count - 1) / 2 + ARITHMETIC_SLACK


def check_answers(questions: Mapping[str, Question], raw: object) -> dict[str, Answer] | tuple[str, ...]:
    """The answers by question id in the questions' order, or every reason why they cannot be used.

    raw: what a scorer gave, an object from question id to answer, of which nothing is trusted. Exactly the
    asked ids; the right type; exactly the options or levels asked; finite numbers in 0..1 (1 and 0 may be
    integers, -0.0 is zero, true and false are not numbers); sum, choice and score in agreement within
    `sum_tolerance`, exactly, and within `score_tolerance`. A server's own `confidence` and `legend` may be
    left out, since nothing is decided on them; where they stand they must be a number in 0..1 and the levels
    as asked. Other fields of an answer are ignored.
    """
    if not isinstance(raw, (dict, Mapping)):
        return (f"answers must be an object from question id to answer, not {wrong_kind(raw)}",)
    answers: dict[str, Answer] = {}
    reasons: list[str] = []
    for question_id, question in questions.items():
        given = raw.get(question_id)
        # As nearly all answers are: a policy may ask forty of them of every ticket, and this takes a third of the time.
        if (
            type(given) is dict
            and type(question) is NoulQuestion
            and given.get("type") == "noul"
            and type(noul := given.get("noul")) is float
            and 0 <= noul <= 1
        ):
            answers[question_id] = NoulAnswer(noul)
            continue
        found = _check_answer(question, given) if question_id in raw else ["no answer"]
        if isinstance(found, list):
            reasons.extend(f"question {quote(question_id)}: {reason}" for reason in found)
        else:
            answers[question_id] = found
    if len(answers) == len(questions) == len(raw):
        return answers  # each question has its answer, and there is no other
    unasked = [str(question_id) for question_id in raw if question_id not in questions]
    reasons.extend(
        f"question {quote(question_id)}: answered but not asked" for question_id in unasked[:_MAX_NAMED]
    )
    if len(unasked) > _MAX_NAMED:
        reasons.append(f"{len(unasked) - _MAX_NAMED} more answered but not asked")
    return tuple(first_few(reasons, most=_MAX_REASONS)) if reasons else answers


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
        if len(reasons) > _MAX_NAMED:
            return [*reasons[:_MAX_NAMED], f"and more of its {len(labels)} probabilities"]
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
