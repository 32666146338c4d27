"""The acceptable assignments that are nearest to a model's: suggestions, and no judgement of what is true.

Promise: each differs from the model's assignment in as few questions as any acceptable one can; of equals those come
first that the policy's order of questions and labels gives first. Facts are never changed. The search ends at a bound,
and says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ticketgate.agents.deciding.selection import DEFAULT_THRESHOLD
from ticketgate.agents.policy.atoms import label
from ticketgate.agents.policy.effects import Unfilled, fill_in
from ticketgate.agents.policy.facts import Fact, NoFact, read_fact
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.space import Outcomes, outcomes
from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import NoulQuestion

# Assignments looked at: 20,000 take a quarter of a second, which a person waits for without noticing.
MOST_LOOKED_AT = 20_000
MOST_SUGGESTED = 5


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One acceptable assignment: its labels, sorted, and the questions that it answers otherwise than the model."""

    labels: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """Suggestions, the nearest first. is_whole: False where the search ended at its bound, so that a nearer one than
    those found, or any, may be missing. model: the model's own labels, of every question, the unsure ones as well."""

    suggestions: tuple[Suggestion, ...]
    is_whole: bool
    model: tuple[str, ...]


def nearest(ticket: Ticket, record: DecisionRecord, policy: Policy, *, most: int = MOST_SUGGESTED) -> Nearest:
    """The nearest acceptable assignments of this ticket, by the answers that its record has."""
    facts = {name: read_fact(name, mapped, ticket.attributes) for name, mapped in policy.mapped.items()}
    fixed = {fact.selected for fact in facts.values() if isinstance(fact, Fact)} - {None}
    choices = [outcomes(name, question) for name, question in policy.questions.items()]
    given = {each.question_id: _answered(each, record, policy) for each in choices}
    model = tuple(
        sorted({name for name in given.values() if name is not None} | {str(each) for each in fixed})
    )
    if any(isinstance(fact, NoFact) for fact in facts.values()):
        return Nearest((), is_whole=True, model=model)
    found: list[Suggestion] = []
    looked_at, nearest_so_far = 0, None
    for changed, labels in _by_distance(choices, given):
        if nearest_so_far is not None and len(changed) > nearest_so_far:
            break
        if looked_at == MOST_LOOKED_AT:
            return Nearest(tuple(found), is_whole=False, model=model)
        looked_at += 1
        selected = frozenset({name for name in labels if name is not None} | {str(each) for each in fixed})
        if not _is_acceptable(selected, ticket, policy):
            continue
        nearest_so_far = len(changed)
        found.append(Suggestion(tuple(sorted(selected)), changed))
        if len(found) == most:
            break
    return Nearest(tuple(found), is_whole=True, model=model)


def _is_acceptable(selected: AbstractSet[str], ticket: Ticket, policy: Policy) -> bool:
    if not all(policy.quick.truths(selected).values()):
        return False
    return not isinstance(fill_in(policy.effects, ticket, selected), Unfilled)


def _by_distance(
    choices: list[Outcomes], given: Mapping[str, str | None]
) -> Iterator[tuple[tuple[str, ...], list[str | None]]]:
    """Every assignment, those that change fewer questions first; which change, and the label of each question."""
    names = [each.question_id for each in choices]
    for count in range(len(choices) + 1):
        for places in itertools.combinations(range(len(choices)), count):
            others = [
                [name for name in choices[place].labels if name != given[names[place]]] for place in places
            ]
            for picked in itertools.product(*others):
                labels = [given[name] for name in names]
                for place, name in zip(places, picked, strict=True):
                    labels[place] = name
                yield tuple(names[place] for place in places), labels


def _answered(each: Outcomes, record: DecisionRecord, policy: Policy) -> str | None:
    """What the model answered, sure or not; of a question that it did not answer the policy's first label."""
    name = each.question_id
    question = policy.questions[name]
    chance = record.probabilities.get(name)
    if isinstance(question, NoulQuestion):
        bound = policy.thresholds.get(name, DEFAULT_THRESHOLD)
        return name if isinstance(chance, int | float) and chance >= bound else None
    if isinstance(chance, Mapping):
        best = max(chance, key=lambda key: chance[key], default="")
        if label(name, best) in each.labels:
            return label(name, best)
    return each.labels[0]
