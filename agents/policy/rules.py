"""What the declared rules say of one assignment.

Promise: every violated rule is reported, in the policy's order, and the assignment is only read: it is never
searched, relabelled or repaired. An abstained question is unknown, and an unknown can neither break a rule
nor excuse a break that the known answers make on their own.
"""

import itertools
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import assert_never

from ticketgate.agents.policy.atoms import Atom, Truth
from ticketgate.codecs.records.decision import Violation

# Ways to complete abstained questions that a rule names several times. Two choices of 255 labels have 65,025 of
# them, which would hold up a ticket; beyond the limit their atoms are weighed apart, which leaves more rules open.
MAX_COMPLETIONS = 4096


@dataclass(frozen=True, slots=True)
class Implies:
    """Where every atom of `left` holds, every atom of `right` must."""

    left: tuple[Atom, ...]
    right: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Iff:
    """Either all of `left` and all of `right` hold, or neither side does."""

    left: tuple[Atom, ...]
    right: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Forbid:
    """The atoms must not all hold together."""

    atoms: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """At least `least` and at most `most` of the atoms hold, both included."""

    atoms: tuple[Atom, ...]
    least: int
    most: int


Constraint = Implies | Iff | Forbid | Count


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint with the name and the sentence under which people meet it.

    sentence: what the constraint says, whatever the author's message.
    entangled: of each question that several of its atoms name, what it can select, one set for each outcome.
    """

    id: str
    message: str
    sentence: str
    constraint: Constraint
    entangled: tuple[tuple[str, tuple[frozenset[str], ...]], ...] = ()

    def truth(self, selected: AbstractSet[str], abstained: AbstractSet[str] = frozenset()) -> Truth:
        """Whether the rule holds: True or False whatever the abstained questions' answers are, None if it hangs
        on them (or, beyond MAX_COMPLETIONS, might)."""
        open_ones = [outcomes for name, outcomes in self.entangled if name in abstained]
        if not open_ones or prod(map(len, open_ones)) > MAX_COMPLETIONS:
            return truth(self.constraint, selected, abstained)
        rest = frozenset(abstained).difference(name for name, _ in self.entangled)
        found = {
            truth(self.constraint, frozenset(selected).union(*completion), rest)
            for completion in itertools.product(*open_ones)
        }
        return found.pop() if len(found) == 1 else None


def atoms_of(constraint: Constraint) -> tuple[Atom, ...]:
    """Every atom of a constraint, in the order written."""
    match constraint:
        case Implies(left, right) | Iff(left, right):
            return (*left, *right)
        case Forbid(atoms) | Count(atoms):
            return atoms
        case _:
            assert_never(constraint)


def violations(
    rules: Iterable[Rule], selected: AbstractSet[str], abstained: AbstractSet[str] = frozenset()
) -> tuple[Violation, ...]:
    """Every rule that this assignment breaks whatever the `abstained` questions' answers are, in order.

    `selected` has the selected labels (`urgent`, `kind=bug`, `anger=2`), `abstained` ids of questions.
    """
    return tuple(
        Violation(rule=rule.id, message=rule.message)
        for rule in rules
        if rule.truth(selected, abstained) is False
    )


def truth(
    constraint: Constraint, selected: AbstractSet[str], abstained: AbstractSet[str] = frozenset()
) -> Truth:
    """Whether the constraint holds: True, False, or None where that hangs on an abstained question.

    True and False are safe: no answer to the abstained questions can change them. None is exact unless the
    constraint names one abstained question in several atoms, which are weighed apart here; see `Rule.truth`.
    """
    match constraint:
        case Implies(left, right):
            return _either(_denied(_all_of(left, selected, abstained)), _all_of(right, selected, abstained))
        case Iff(left, right):
            return _same(_all_of(left, selected, abstained), _all_of(right, selected, abstained))
        case Forbid(atoms):
            return _denied(_all_of(atoms, selected, abstained))
        case Count(atoms, least, most):
            return _counted(_truths(atoms, selected, abstained), least, most)
        case _:
            assert_never(constraint)


def all_hold(atoms: Iterable[Atom], selected: AbstractSet[str]) -> bool:
    """Whether every atom holds under an assignment without abstentions; none at all hold trivially."""
    return all(atom.members.isdisjoint(selected) is atom.negated for atom in atoms)


def _truths(
    atoms: Iterable[Atom], selected: AbstractSet[str], abstained: AbstractSet[str]
) -> tuple[Truth, ...]:
    return tuple(atom.truth(selected, abstained) for atom in atoms)


def _all_of(atoms: Iterable[Atom], selected: AbstractSet[str], abstained: AbstractSet[str]) -> Truth:
    truths = _truths(atoms, selected, abstained)
    if False in truths:
        return False
    return None if None in truths else True


def _denied(value: Truth) -> Truth:
    return None if value is None else not value


def _either(one: Truth, other: Truth) -> Truth:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False


def _same(one: Truth, other: Truth) -> Truth:
    return None if one is None or other is None else one is other


def _counted(truths: Sequence[Truth], least: int, most: int) -> Truth:
    """The unknown ones may all hold or none: the count lies between the two."""
    fewest = truths.count(True)
    greatest = fewest + truths.count(None)
    if greatest < least or fewest > most:
        return False
    return True if least <= fewest and greatest <= most else None
