"""What lint asks of a group of questions, whoever answers: can this be, while these rules are kept?

Two answer: `Enumerated` sees all assignments of a small group at once (space.py), `solver.Solved` searches a large
one. Promise: both say the same, and so does `core`, which only asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from ticketgate.agents.policy.atoms import Atom
from ticketgate.agents.policy.rules import Rule
from ticketgate.agents.policy.space import Space
from ticketgate.agents.workbench.policy.groups import Group


@dataclass(frozen=True, slots=True)
class Case:
    """Some of a group's assignments: those in which every atom holds and, if one is given, `broken` is broken."""

    atoms: tuple[Atom, ...] = ()
    broken: Rule | None = None


ANYTHING = Case()


def having(question_id: str, name: str) -> Atom:
    """The atom that holds when a label is selected."""
    return Atom(name, question_id, frozenset({name}))


def lacking(question_id: str, name: str) -> Atom:
    """The atom that holds when a label is not selected."""
    return Atom(f"!{name}", question_id, frozenset({name}), negated=True)


class Logic(Protocol):
    """The assignments of one group."""

    @property
    def group(self) -> Group:
        """Whose assignments they are."""
        ...

    def possible(self, case: Case, kept: Sequence[Rule]) -> bool:
        """Whether some assignment of the case keeps all of these rules."""
        ...

    def witness(self, case: Case, kept: Sequence[Rule] = ()) -> tuple[str, ...] | None:
        """The labels, sorted, of one assignment of the case that keeps these rules, whatever others it breaks, and
        always the same one; None if there is none."""
        ...

    def same(self, one: Rule, other: Rule) -> bool:
        """Whether two rules are kept by the same assignments."""
        ...


def core(logic: Logic, case: Case, among: Sequence[Rule] | None = None) -> tuple[str, ...]:
    """Ids of rules that together make the case impossible, in the file's order, none of them needless.

    `among`: the rules to choose from, all by default; together they must make it impossible. Of equally good cores
    it is the one whose last rule stands first in the file, then its last but one, and so on.
    """
    rules = logic.group.rules if among is None else among
    found: list[Rule] = []
    end = len(rules)
    while logic.possible(case, found):
        # The shortest beginning that, with what was found, still makes it impossible: its last rule is needed.
        shortest, longest = 0, end
        while shortest < longest:
            middle = (shortest + longest) // 2
            if logic.possible(case, [*rules[:middle], *found]):
                shortest = middle + 1
            else:
                longest = middle
        end = longest - 1
        found.insert(0, rules[end])
    return tuple(rule.id for rule in found)


class Enumerated:
    """All assignments of a group that has at most space.MAX_ASSIGNMENTS of them."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._space = Space(group.outcomes)
        self._satisfying = {rule.id: self._space.satisfying(rule.constraint) for rule in group.rules}
        self._accepted = self._keeping(group.rules)

    def possible(self, case: Case, kept: Sequence[Rule]) -> bool:
        """See Logic."""
        keeping = self._accepted if kept is self.group.rules else self._keeping(kept)
        return keeping & self._of(case) != 0

    def witness(self, case: Case, kept: Sequence[Rule] = ()) -> tuple[str, ...] | None:
        """See Logic."""
        return self._space.example(self._keeping(kept) & self._of(case))

    def same(self, one: Rule, other: Rule) -> bool:
        """See Logic."""
        return self._satisfying[one.id] == self._satisfying[other.id]

    def _of(self, case: Case) -> int:
        found = self._space.where(case.atoms)
        return found if case.broken is None else found & ~self._satisfying[case.broken.id]

    def _keeping(self, rules: Iterable[Rule]) -> int:
        return reduce(lambda kept, rule: kept & self._satisfying[rule.id], rules, self._space.everything)
