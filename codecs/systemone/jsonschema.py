"""JSON Schema to questions, and answers back to JSON.

A small part of JSON Schema on purpose: what has finitely many values. Everything else is refused with the property's
name, for a keyword that is passed over would let a value through that the schema forbids.

    enum, const             choice; all boolean: noul
    boolean                 noul
    integer or number with whole minimum and maximum    score
    Optional (anyOf or oneOf with null, type: [X, "null"])   as without it: null is never answered

One admissible value (const, an enum of one, minimum = maximum) needs no model: the mapper answers it.
Each question has the schema's `values` beside the protocol's labels and levels: 1 to 3 are asked as levels 0 to 2, and
are 1 to 3 again for whoever reads the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.systemone.schema_properties import Property, SchemaError, read_properties
from ticketgate.codecs.values.strict import JsonValue

__all__ = ["SchemaError", "answers_to_json", "questions_from_json_schema"]

# A noul at or above it is true, as everywhere where no other threshold is named.
_THRESHOLD: Final = 0.5


def questions_from_json_schema(schema: JsonValue) -> dict[str, Question]:
    """A question for each property that has more than one admissible value, in the schema's order.

    Raises SchemaError, which names the property.
    """
    return {
        name: each.question for name, each in read_properties(schema).items() if each.question is not None
    }


def answers_to_json(answers: Mapping[str, object], schema: JsonValue) -> dict[str, JsonValue]:
    """The object that the answers describe, each value in its original JSON type, in the schema's order.

    answers: by property, checked (`Answer`) or raw; a raw one is checked here. One that is absent is left out. A noul
    is true from 0.5 on; a score is its most probable level. Raises SchemaError, which names the property, also for one
    that the schema requires and nobody answered.
    """
    found: dict[str, JsonValue] = {}
    properties = read_properties(schema)
    for name, each in properties.items():
        if each.question is None:
            found[name] = each.values[0]
        elif name in answers:
            found[name] = _value(name, each, each.question, answers[name])
        elif each.is_required:
            raise SchemaError(name, "is required, and not answered")
    for name in answers:
        if name not in properties:
            raise SchemaError(name, "answered, but no property of the schema")
    return found


def _value(name: str, known: Property, question: Question, answer: object) -> JsonValue:
    match _checked(name, question, answer):
        case NoulAnswer(noul=noul):
            return known.values[noul >= _THRESHOLD]
        case ChoiceAnswer(choice=choice):
            return known.values[question.labels.index(choice)]
        case ScoreAnswer() as score:
            return known.values[score.mode]


def _checked(name: str, question: Question, answer: object) -> Answer:
    if isinstance(answer, (NoulAnswer, ChoiceAnswer, ScoreAnswer)):
        fits = answer.type == question.type
        if isinstance(answer, (ChoiceAnswer, ScoreAnswer)):
            fits = fits and tuple(answer.probabilities) == question.labels
        if not fits:
            raise SchemaError(
                name, f"the answer is of another question than the {question.type} that it asks"
            )
        return answer
    checked = check_answers({name: question}, {name: answer})
    if isinstance(checked, tuple):
        raise SchemaError(name, "; ".join(checked))
    return checked[name]
