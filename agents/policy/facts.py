"""Questions that a ticket's attributes answer: `from = "attributes.vip"`. No model is asked.

Promise: the same attributes give the same label on every worker. A fact that is missing or of another type is
said by name and never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from ticketgate.agents.policy.atoms import label
from ticketgate.agents.policy.attributes import MISSING, AttributePath, Missing
from ticketgate.codecs.systemone.questions import (
    ChoiceQuestion,
    NoulQuestion,
    Question,
    ScoreQuestion,
    name_of,
)
from ticketgate.codecs.values.malformed import quote, wrong_kind
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.texts import alike


@dataclass(frozen=True, slots=True)
class MappedQuestion:
    """A question and where its answer stands. Values: noul a boolean, choice a label, score a level's number."""

    question: Question
    path: AttributePath


@dataclass(frozen=True, slots=True)
class Fact:
    """What an attribute says. `selected` is the label it selects, None for a noul that is false."""

    value: JsonValue
    selected: str | None


@dataclass(frozen=True, slots=True)
class NoFact:
    """Why an attribute answers nothing, for people."""

    reason: str


def read_fact(question_id: str, mapped: MappedQuestion, attributes: Mapping[str, JsonValue]) -> Fact | NoFact:
    """The mapped question's answer out of a ticket's attributes, or why there is none."""
    value = mapped.path.find(attributes)
    if isinstance(value, Missing):
        return NoFact(f'question {quote(question_id)}: the ticket has no attribute "{mapped.path}"')
    wanted = _wanted(mapped.question, value)
    if wanted is not None:
        given = quote(value) if isinstance(value, str) else wrong_kind(value)
        labels = () if isinstance(mapped.question, NoulQuestion) else mapped.question.names
        twin = alike(value, labels) if isinstance(value, str) else ""
        return NoFact(
            f'question {quote(question_id)}: attribute "{mapped.path}" is {given}, not {wanted}{twin}'
        )
    if isinstance(mapped.question, NoulQuestion):
        return Fact(value, question_id if value else None)
    return Fact(value, label(question_id, str(name_of(mapped.question, value))))


def fact_record(mapped: MappedQuestion, fact: Fact) -> dict[str, JsonValue]:
    """How a fact stands among a record's `answers`: its type, its value, where it came from; no probability."""
    return {"type": mapped.question.type, "value": fact.value, "from": f"attributes.{mapped.path}"}


def recorded_fact(mapped: MappedQuestion, recorded: object) -> JsonValue | Missing:
    """The value out of what `fact_record` wrote, or MISSING if `recorded` is something else."""
    if not isinstance(recorded, dict) or recorded.get("from") != f"attributes.{mapped.path}":
        return MISSING
    value: JsonValue | Missing = recorded.get("value", MISSING)
    return value


def _wanted(question: Question, value: JsonValue) -> str | None:
    """What the value should have been, or None if it is right."""
    match question:
        case NoulQuestion():
            return None if isinstance(value, bool) else "true or false"
        case ChoiceQuestion():
            if name_of(question, value) is not None:
                return None
            return f"one of {', '.join(question.labels[:12])}{', …' if len(question.labels) > 12 else ''}"
        case ScoreQuestion():
            if isinstance(value, int) and name_of(question, value) is not None:
                return None
            if question.values is not None:
                return f"one of {', '.join(question.names)}"
            return f"a whole number from 0 to {len(question.levels) - 1}"
        case _:
            assert_never(question)
