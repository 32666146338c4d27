"""All assignments of a few questions at once: a set of them is one integer, a bit for each.

Promise: sets are exact. With d1·d2·… values the integers have so many bits, so a rule over a million assignments
costs a few operations on 128 KiB, where going through them one by one would take seconds.
A choice has exactly one label and a score exactly one level; no rule need say so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import assert_never

from ticketgate.agents.policy.atoms import Atom, label
from ticketgate.agents.policy.rules import Constraint, Count, Forbid, Iff, Implies
from ticketgate.codecs.systemone.questions import NoulQuestion, Question

# Sets of so many assignments: 20 nouls. Twice that for each further one, and lint works with hundreds of sets.
MAX_ASSIGNMENTS = 2**20


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a question can come to: for each outcome the label that it selects, None for a noul that is false."""

    question_id: str
    labels: tuple[str | None, ...]

    @property
    def selections(self) -> tuple[frozenset[str], ...]:
        """For each outcome what it adds to an assignment: one label, or nothing."""
        return tuple(frozenset() if name is None else frozenset({name}) for name in self.labels)


def outcomes(question_id: str, question: Question) -> Outcomes:
    """A question's outcomes in their order."""
    if isinstance(question, NoulQuestion):
        return Outcomes(question_id, (None, question_id))
    return Outcomes(question_id, tuple(label(question_id, each) for each in question.names))


class Space:
    """Every assignment of some questions. `size` is their number, `everything` the set of all of them."""

    def __init__(self, questions: Iterable[Outcomes]) -> None:
        self._questions = tuple(questions)
        self.size = prod(len(each.labels) for each in self._questions)
        self.everything = (1 << self.size) - 1
        self._having: Mapping[str, int] = self._sets()

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label that an assignment may have, by question."""
        return tuple(self._having)

    def having(self, name: str) -> int:
        """The assignments that have a label."""
        return self._having[name]

    def where(self, atoms: Iterable[Atom]) -> int:
        """The assignments in which every atom holds."""
        found = self.everything
        for atom in atoms:
            found &= self._holding(atom)
        return found

    def satisfying(self, constraint: Constraint) -> int:
        """The assignments in which a constraint holds."""
        match constraint:
            case Implies(left, right):
                return self._without(self.where(left)) | self.where(right)
            case Iff(left, right):
                return self._without(self.where(left) ^ self.where(right))
            case Forbid(atoms):
                return self._without(self.where(atoms))
            case Count(atoms, least, most):
                return self._counted(atoms, least, most)
            case _:
                assert_never(constraint)

    def example(self, assignments: int) -> tuple[str, ...] | None:
        """The labels, sorted, of one of these assignments, always the same; None if there is none."""
        if not assignments:
            return None
        index = (assignments & -assignments).bit_length() - 1
        selected: list[str] = []
        for each in self._questions:
            index, outcome = divmod(index, len(each.labels))
            name = each.labels[outcome]
            if name is not None:
                selected.append(name)
        return tuple(sorted(selected))

    def _sets(self) -> dict[str, int]:
        """An assignment's number has a digit for each question, the first question's varying fastest."""
        sets: dict[str, int] = {}
        stride = 1
        for each in self._questions:
            period = stride * len(each.labels)
            for outcome, name in enumerate(each.labels):
                if name is not None:
                    run = ((1 << stride) - 1) << (outcome * stride)
                    sets[name] = _repeated(run, period, self.size // period)
            stride = period
        return sets

    def _without(self, assignments: int) -> int:
        return self.everything ^ assignments

    def _holding(self, atom: Atom) -> int:
        found = 0
        for member in atom.members:
            # A label that is left out of the space is one that no assignment has.
            found |= self._having.get(member, 0)
        return self._without(found) if atom.negated else found

    def _counted(self, atoms: tuple[Atom, ...], least: int, most: int) -> int:
        # exactly[n]: where n of the atoms seen so far hold; beyond `most` it does not matter how many.
        exactly = [self.everything] + [0] * most
        for atom in atoms:
            holding = self._holding(atom)
            for n in range(most, 0, -1):
                exactly[n] = (exactly[n] & ~holding) | (exactly[n - 1] & holding)
            exactly[0] &= ~holding
        found = 0
        for n in range(least, most + 1):
            found |= exactly[n]
        return found


def _repeated(run: int, period: int, times: int) -> int:
    """`run` every `period` bits, `times` times, by doubling."""
    done = 1
    while done * 2 <= times:
        run |= run << (done * period)
        done *= 2
    rest = (times - done) * period
    return run | (run & ((1 << rest) - 1)) << (done * period)
