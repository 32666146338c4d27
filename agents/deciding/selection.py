"""From answers to the labels they select.

Promise: each answer is read alone, at the precision it came with; nothing is rounded, and there is no number
for several answers together, since their marginals do not determine one.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import assert_never

from ticketgate.agents.policy.atoms import label
from ticketgate.agents.policy.effects import selected_value
from ticketgate.codecs.records.decision import Probability
from ticketgate.codecs.systemone.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer
from ticketgate.codecs.systemone.questions import NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.strict import JsonValue

# What selects a noul where the policy says nothing else.
DEFAULT_THRESHOLD = 0.5


def select(
    answers: Mapping[str, Answer], questions: Mapping[str, Question], thresholds: Mapping[str, float]
) -> frozenset[str]:
    """The labels that the answers to `questions` select.

    A noul (`urgent`) from its threshold on, that included, 0.5 unless `thresholds` tells; a choice its most
    probable label (`kind=bug`), of equals the earlier; a score its most probable level (`anger=2`), of equals
    the lower, never a rounded expectation. A level that has a value of its own is named by it.
    """
    selected: set[str] = set()
    for question_id, answer in answers.items():
        match answer:
            case NoulAnswer():
                if answer.noul >= thresholds.get(question_id, DEFAULT_THRESHOLD):
                    selected.add(question_id)
            case ChoiceAnswer():
                selected.add(label(question_id, answer.mode))
            case ScoreAnswer():
                selected.add(label(question_id, _levels(questions[question_id])[answer.mode]))
            case _:
                assert_never(answer)
    return frozenset(selected)


def own_values(questions: Mapping[str, Question], selected: AbstractSet[str]) -> dict[str, JsonValue]:
    """What the assignment says, each in its own type. questions: such as have values of their own.

    A choice or score without a label in the assignment is left out; a noul without one is false.
    """
    return {
        question_id: selected_value(question_id, question, selected)
        for question_id, question in questions.items()
        if isinstance(question, NoulQuestion)
        or any(label(question_id, name) in selected for name in question.names)
    }


def probabilities(answers: Mapping[str, Answer], questions: Mapping[str, Question]) -> dict[str, Probability]:
    """What was scored, number for number: of a noul the probability of true, else by label or level."""
    found: dict[str, Probability] = {}
    for question_id, answer in answers.items():
        match answer:
            case NoulAnswer():
                found[question_id] = answer.noul
            case ChoiceAnswer():
                found[question_id] = dict(answer.probabilities)
            case ScoreAnswer():
                levels = _levels(questions[question_id])
                found[question_id] = dict(zip(levels, answer.probabilities.values(), strict=True))
            case _:
                assert_never(answer)
    return found


def _levels(question: Question) -> tuple[str, ...]:
    return question.names if isinstance(question, ScoreQuestion) else question.labels
