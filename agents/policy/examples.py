"""Three written examples for each question: what its author meant by it, in a form that a model can be held to.

`fits` an admissible state · `other` one that is well formed and means another label · `unclear` one in which the
truth is missing or uncertain, so that a model should not be sure. `ticketgate policy test` shows them to a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from ticketgate.agents.policy.document import ExamplesDocument
from ticketgate.agents.policy.resolve import Resolver
from ticketgate.codecs.files.positions import Path
from ticketgate.codecs.records.ticket import is_empty_state
from ticketgate.codecs.systemone.questions import (
    ChoiceQuestion,
    NoulQuestion,
    Question,
    ScoreQuestion,
    name_of,
)
from ticketgate.codecs.values.strict import JsonValue

ExampleKind = Literal["fits", "other", "unclear"]
EXAMPLE_KINDS: tuple[ExampleKind, ...] = get_args(ExampleKind)


@dataclass(frozen=True, slots=True)
class Example:
    """A state, and what the question's answer to it must select.

    expects: of a noul true or false, of a choice a label, of a score a level; None for `unclear`.
    """

    kind: ExampleKind
    state: JsonValue
    expects: bool | str | int | None


def read_examples(
    names: Resolver, question: Question, written: ExamplesDocument, place: Path
) -> tuple[Example, ...]:
    """The examples that could be understood, in the order of EXAMPLE_KINDS; problems are noted in `names`."""
    found: dict[ExampleKind, Example] = {}
    for kind in EXAMPLE_KINDS:
        value: object = getattr(written, kind)
        if value is not None and (example := _read(names, question, kind, value, (*place, kind))) is not None:
            found[kind] = example
    if "fits" in found and "other" in found and found["fits"].expects == found["other"].expects:
        names.refuse(
            (*place, "other"),
            f"the examples fits and other both mean {found['other'].expects}",
            "let other be a state that means another label",
        )
    return tuple(found.values())


def _read(
    names: Resolver, question: Question, kind: ExampleKind, value: object, place: Path
) -> Example | None:
    label: object = None
    state = value
    if isinstance(value, dict):
        if "state" not in value or not set(value) <= {"state", "label"}:
            names.refuse(
                place,
                f"the example {kind} is a table without state, or with more than state and label",
                'write { state = "…" }, and label = "…" for a choice or score',
            )
            return None
        state, label = value["state"], value.get("label")
    if not isinstance(state, str | list | dict) or is_empty_state(state):
        names.refuse(
            place, f"the example {kind} has no state to read", "write what a ticket of this kind would say"
        )
        return None
    if kind == "unclear" or isinstance(question, NoulQuestion):
        if label is not None:
            names.refuse(place, f"the example {kind} of this question has no label", "remove label")
            return None
        return Example(kind, state, None if kind == "unclear" else kind == "fits")
    expects = _label(question, label)
    if expects is None:
        names.refuse(
            place,
            f"the example {kind} names no label of the question",
            f'write {{ state = "…", label = {_some_label(question)} }}',
            code="unknown_id" if label is not None else "invalid",
        )
        return None
    return Example(kind, state, expects)


def _label(question: ChoiceQuestion | ScoreQuestion, label: object) -> str | int | None:
    if isinstance(question, ChoiceQuestion):
        return name_of(question, label) if isinstance(label, str | int | float) else None
    return label if isinstance(label, int) and name_of(question, label) is not None else None


def _some_label(question: ChoiceQuestion | ScoreQuestion) -> str:
    return f'"{question.labels[0]}"' if isinstance(question, ChoiceQuestion) else question.names[0]


def missing_kinds(examples: Mapping[str, tuple[Example, ...]], question_id: str) -> tuple[ExampleKind, ...]:
    """Which of the three a question lacks."""
    had = {example.kind for example in examples.get(question_id, ())}
    return tuple(kind for kind in EXAMPLE_KINDS if kind not in had)
