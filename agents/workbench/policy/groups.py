"""A policy's questions in the groups that its rules make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Constraint, Rule, atoms_of
from ticketgate.agents.policy.space import Outcomes, outcomes


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that rules connect, and those rules, both in the file's order; one question where none does."""

    outcomes: tuple[Outcomes, ...]
    rules: tuple[Rule, ...]

    @property
    def question_ids(self) -> tuple[str, ...]:
        """Whose group it is."""
        return tuple(each.question_id for each in self.outcomes)

    @property
    def assignments(self) -> int:
        """How many there are."""
        return prod(len(each.labels) for each in self.outcomes)


def groups(policy: Policy) -> tuple[Group, ...]:
    """The policy's groups, in the order of their first questions; each question is in exactly one."""
    return connected([outcomes(name, policy.question(name)) for name in policy.ids], policy.rules)


def connected(questions: Sequence[Outcomes], rules: Sequence[Rule]) -> tuple[Group, ...]:
    """Questions in the groups that rules make of them, in the order of their first questions."""
    group_of = {each.question_id: each.question_id for each in questions}

    def root(question_id: str) -> str:
        while group_of[question_id] != question_id:
            question_id = group_of[question_id]
        return question_id

    for rule in rules:
        first, *others = sorted(questions_of(rule.constraint))
        for other in others:
            group_of[root(other)] = root(first)
    members: dict[str, list[Outcomes]] = {}
    for each in questions:
        members.setdefault(root(each.question_id), []).append(each)
    theirs: dict[str, list[Rule]] = {}
    for rule in rules:
        theirs.setdefault(root(min(questions_of(rule.constraint))), []).append(rule)
    return tuple(Group(tuple(each), tuple(theirs.get(name, ()))) for name, each in members.items())


def questions_of(constraint: Constraint) -> frozenset[str]:
    """The questions that a constraint's atoms name."""
    return frozenset(atom.question for atom in atoms_of(constraint))
