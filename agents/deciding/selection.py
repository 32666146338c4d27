"""From answers to the labels they select.

Promise: each answer is read alone, at the precision it came with; nothing is rounded, and there is no number
for several answers together, since their marginals do not determine one.
"""

from collections.abc import Mapping
from typing import assert_never

from ticketgate.agents.policy.atoms import label
from ticketgate.codecs.records.decision import Probability
from ticketgate.codecs.systemone.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer

# What selects a noul where the policy says nothing else.
DEFAULT_THRESHOLD = 0.5


def select(answers: Mapping[str, Answer], thresholds: Mapping[str, float]) -> frozenset[str]:
    """The labels that the answers select.

    A noul (`urgent`) from its threshold on, that included, 0.5 unless `thresholds` tells; a choice its most
    probable label (`kind=bug`), of equals the earlier; a score its most probable level (`anger=2`), of equals
    the lower, never a rounded expectation.
    """
    selected: set[str] = set()
    for question_id, answer in answers.items():
        match answer:
            case NoulAnswer():
                if answer.noul >= thresholds.get(question_id, DEFAULT_THRESHOLD):
                    selected.add(question_id)
            case ChoiceAnswer() | ScoreAnswer():
                selected.add(label(question_id, answer.mode))
            case _:
                assert_never(answer)
    return frozenset(selected)


def probabilities(answers: Mapping[str, Answer]) -> dict[str, Probability]:
    """What was scored, number for number: of a noul the probability of true, else by label or level."""
    found: dict[str, Probability] = {}
    for question_id, answer in answers.items():
        match answer:
            case NoulAnswer():
                found[question_id] = answer.noul
            case ChoiceAnswer() | ScoreAnswer():
                found[question_id] = dict(answer.probabilities)
            case _:
                assert_never(answer)
    return found
