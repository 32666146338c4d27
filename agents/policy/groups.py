"""A policy's questions in the groups that its rules make of them, each small enough to be seen whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Constraint, Rule, atoms_of
from ticketgate.agents.policy.space import Outcomes, Space, outcomes


@dataclass(frozen=True)  # no slots: cached_property keeps its results in __dict__
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
        """How many there are; known without building them."""
        return prod(len(each.labels) for each in self.outcomes)

    @cached_property
    def space(self) -> Space:
        """All its assignments: ask only of a group that is small enough."""
        return Space(self.outcomes)

    @cached_property
    def accepted(self) -> int:
        """The assignments that keep every rule."""
        return self.kept_by(self.rules)

    @cached_property
    def _satisfying(self) -> dict[str, int]:
        return {rule.id: self.space.satisfying(rule.constraint) for rule in self.rules}

    def satisfying(self, rule: Rule) -> int:
        """The assignments that keep one of its rules."""
        return self._satisfying[rule.id]

    def kept_by(self, rules: Iterable[Rule]) -> int:
        """The assignments that keep all of these rules."""
        return reduce(lambda kept, rule: kept & self.satisfying(rule), rules, self.space.everything)

    def core(self, assignments: int, *, among: Sequence[Rule] | None = None) -> tuple[str, ...]:
        """Ids of rules that together rule out all of `assignments`, in the file's order, none of them needless.

        `among`: the rules to choose from, all by default; together they must rule the assignments out.
        """
        kept = list(self.rules if among is None else among)
        # From the last on, so that of equally good cores the one that stands first in the file is named.
        for rule in reversed(kept.copy()):
            others = [other for other in kept if other is not rule]
            if not self.kept_by(others) & assignments:
                kept = others
        return tuple(rule.id for rule in kept)


def groups(policy: Policy) -> tuple[Group, ...]:
    """The policy's groups, in the order of their first questions; each question is in exactly one."""
    group_of = {question_id: question_id for question_id in policy.ids}

    def root(question_id: str) -> str:
        while group_of[question_id] != question_id:
            question_id = group_of[question_id]
        return question_id

    for rule in policy.rules:
        first, *others = sorted(questions_of(rule.constraint))
        for other in others:
            group_of[root(other)] = root(first)
    members: dict[str, list[Outcomes]] = {}
    for question_id in policy.ids:
        question = policy.questions.get(question_id) or policy.mapped[question_id].question
        members.setdefault(root(question_id), []).append(outcomes(question_id, question))
    rules: dict[str, list[Rule]] = {}
    for rule in policy.rules:
        rules.setdefault(root(min(questions_of(rule.constraint))), []).append(rule)
    return tuple(Group(tuple(each), tuple(rules.get(name, ()))) for name, each in members.items())


def questions_of(constraint: Constraint) -> frozenset[str]:
    """The questions that a constraint's atoms name."""
    return frozenset(atom.question for atom in atoms_of(constraint))
