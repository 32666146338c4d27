"""What the model answered, as bars, and what a person may answer, as fields.

Promise: pure; every question of the policy is there in its order, facts as what nobody changes. A person's labels come
out of a form as the policy writes them, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from multidict import MultiMapping
from ticketgate.agents.deciding.selection import DEFAULT_THRESHOLD
from ticketgate.agents.policy import Policy
from ticketgate.agents.policy.atoms import label
from ticketgate.agents.policy.facts import Fact, read_fact
from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import NoulQuestion, Question
from ticketgate.codecs.values.printable import json_text
from ticketgate.streams.console.shown.bars import Bar, bar

# Before a question's id in a form, so that no id is taken for another field.
PREFIX = "q:"
# Of a choice so many answers are shown, the most probable first.
MOST_BARS = 5
# So many options are buttons side by side; more are a list that unfolds; beyond that, one types.
MOST_BUTTONS, MOST_LISTED = 6, 300
MOST_LABELS = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """One question as it was answered. asked: its text. bars: of a noul one, else of the most probable answers. more:
    how many others there are."""

    question: str
    asked: str
    kind: str
    bars: tuple[Bar, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that may be given: its label as an assignment writes it, its name, whether it is chosen."""

    label: str
    name: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One question in the form. shape: `check`, `buttons`, `list`, `typed`, or `fact`, which is fixed. changed: whether
    the answer is another than the model's."""

    question: str
    asked: str
    shape: str
    options: tuple[Option, ...]
    changed: bool

    @property
    def name(self) -> str:
        """The field's name in the form."""
        return PREFIX + self.question


def answers_of(record: DecisionRecord, policy: Policy | None) -> tuple[Answer, ...]:
    """In the policy's order, and what it does not know at the end."""
    known = () if policy is None else policy.ids
    names = [name for name in known if name in record.probabilities]
    names += [name for name in record.probabilities if name not in known]
    return tuple(_answer(name, record, policy) for name in names)


def _answer(name: str, record: DecisionRecord, policy: Policy | None) -> Answer:
    chance = record.probabilities[name]
    question = None if policy is None or name not in policy.ids else policy.question(name)
    asked = "" if question is None else words_of(question.instructions)
    if isinstance(chance, Mapping):
        found = sorted(chance.items(), key=lambda each: -each[1])
        shown = found[:MOST_BARS]
        least = None if policy is None else policy.abstain_below
        bars = [bar(each, value, least if place == 0 else None) for place, (each, value) in enumerate(shown)]
        return Answer(name, asked, "choice", tuple(bars), len(found) - len(shown))
    bound = DEFAULT_THRESHOLD if policy is None else policy.thresholds.get(name, DEFAULT_THRESHOLD)
    return Answer(name, asked, "noul", (bar(name, chance, bound),), 0)


def fields_of(
    policy: Policy, ticket: Ticket, chosen: Collection[str], model: Collection[str]
) -> tuple[Field, ...]:
    """The form's questions. chosen: the labels chosen now. model: the model's own."""
    labels, of_model = frozenset(chosen), frozenset(model)
    found = []
    for name in policy.ids:
        if name in policy.mapped:
            found.append(_fact(name, policy, ticket))
        else:
            found.append(_field(name, policy.questions[name], labels, of_model))
    return tuple(found)


def choices_of(policy: Policy, chosen: Collection[str]) -> tuple[Field, ...]:
    """The questions that may be answered for several tickets at once: those that no fact answers."""
    labels = frozenset(chosen)
    return tuple(_field(name, question, labels, labels) for name, question in policy.questions.items())


def _fact(name: str, policy: Policy, ticket: Ticket) -> Field:
    mapped = policy.mapped[name]
    fact = read_fact(name, mapped, ticket.attributes)
    said = json_text(fact.value) if isinstance(fact, Fact) else fact.reason
    asked = words_of(mapped.question.instructions)
    return Field(name, asked, "fact", (Option("", said, is_chosen=True),), changed=False)


def _field(name: str, question: Question, chosen: frozenset[str], model: frozenset[str]) -> Field:
    asked = words_of(question.instructions)
    if isinstance(question, NoulQuestion):
        box = (Option(name, name, name in chosen),)
        return Field(name, asked, "check", box, changed=(name in chosen) != (name in model))
    options = tuple(Option(label(name, each), each, label(name, each) in chosen) for each in question.names)
    count = len(options)
    shape = "buttons" if count <= MOST_BUTTONS else "list" if count <= MOST_LISTED else "typed"
    is_same = {each.label for each in options if each.is_chosen} == {
        each.label for each in options if each.label in model
    }
    if shape == "typed":
        options = tuple(each for each in options if each.is_chosen)
    return Field(name, asked, shape, options, changed=not is_same)


def labels_in(form: MultiMapping[str], policy: Policy) -> frozenset[str] | None:
    """The labels that a form chose; None where it does not say `chosen`. What is typed may be a name alone."""
    if form.get("chosen") != "1":
        return None
    found: set[str] = set()
    for name in policy.questions:
        for value in form.getall(PREFIX + name, [])[:MOST_LABELS]:
            question = policy.questions[name]
            is_name = not isinstance(question, NoulQuestion) and value in question.names
            found.add(label(name, value) if is_name else value)
    return frozenset(each for each in found if each)


def words_of(instructions: object) -> str:
    """A question as text."""
    if instructions is None:
        return ""
    return instructions if isinstance(instructions, str) else json_text(instructions)
