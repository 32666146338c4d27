"""Questions as they were asked: a choice reduced to its shortlist, made anew from what an answer records.

Loads no engine: recorded and written answers are judged where there is none.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ticketgate.codecs.systemone.questions import MIN_OPTIONS, ChoiceQuestion, Question

# Where an answer tells of its shortlist: {labels, scores, k, n, passthrough}.
SHORTLIST: Final = "x_shortlist"


def reduced(question: ChoiceQuestion, labels: object) -> ChoiceQuestion | None:
    """The question with these options alone, in its own order; None if they are not some of its own, each once."""
    if not isinstance(labels, (list, tuple)) or len(labels) < MIN_OPTIONS:
        return None
    wanted = {label for label in labels if isinstance(label, str) and label in question.criteria}
    if len(wanted) != len(labels):
        return None
    return kept(question, [label for label in question.criteria if label in wanted])


def kept(question: ChoiceQuestion, labels: Sequence[str]) -> ChoiceQuestion:
    """The question with these options alone. `labels`: some of its own, each once, in its own order.

    Takes time in proportion to what is kept, unless the options have values of their own.
    """
    criteria = {label: question.criteria[label] for label in labels}
    values = question.values and tuple(
        value for label, value in zip(question.labels, question.values, strict=True) if label in criteria
    )
    return ChoiceQuestion(question.instructions, criteria, values=values)


def asked_as_recorded(questions: Mapping[str, Question], answers: object) -> dict[str, Question]:
    """Of the questions with a shortlist, those whose answer names one that can have been made: as they were asked."""
    found: dict[str, Question] = {}
    for name, question in questions.items():
        if not isinstance(question, ChoiceQuestion) or question.shortlist is None:
            continue
        answer = answers.get(name) if isinstance(answers, Mapping) else None
        told = answer.get(SHORTLIST) if isinstance(answer, Mapping) else None
        labels = told.get("labels") if isinstance(told, Mapping) else None
        asked = reduced(question, labels)
        if asked is not None and len(asked.labels) == min(question.shortlist, len(question.labels)):
            found[name] = asked
    return found
