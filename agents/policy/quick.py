"""All rules of a policy checked at once without abstentions, which is how nearly every ticket comes.

Promise: `QuickRules(rules).truths(selected)` is what `Rule.truth(selected)` says of each, at a tenth of its cost. Every
atom has one bit, set by the labels that it names, so an assignment is one integer; every rule is an implication of bits
or a count of them, and those are gone through in two plain loops. (As sets of labels, or as a function for each rule,
it took several times as long right after a model has run and emptied the processor's caches.)
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import assert_never

from ticketgate.agents.policy.atoms import Atom
from ticketgate.agents.policy.rules import Constraint, Count, Forbid, Iff, Implies, Rule, atoms_of

# The bits that matter, and what they must be.
Pattern = tuple[int, int]
# No bits are -1 after `& 0`.
NEVER: Pattern = (0, -1)


class QuickRules:
    """The rules of one policy, made ready when it is read."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        members = dict.fromkeys(atom.members for rule in rules for atom in atoms_of(rule.constraint))
        self._bits = {each: 1 << place for place, each in enumerate(members)}
        self._of_label: dict[str, int] = {}
        for each, bit in self._bits.items():
            for name in each:
                self._of_label[name] = self._of_label.get(name, 0) | bit
        self._kept = dict.fromkeys((rule.id for rule in rules), True)
        # Rule, then: where the first pattern is met, the second must be.
        self._implications: list[tuple[str, int, int, int, int]] = []
        # Rule, then: which bits are counted, which of them turned, what is added, the least, the most.
        self._counts: list[tuple[str, int, int, int, int, int]] = []
        for rule in rules:
            self._make_ready(rule.id, rule.constraint)

    def truths(self, selected: AbstractSet[str]) -> dict[str, bool]:
        """Of each rule, by id and in order, whether the assignment keeps it."""
        bits = 0
        for name in selected:
            bits |= self._of_label.get(name, 0)
        kept = self._kept.copy()
        for rule_id, cared, wanted, then_cared, then_wanted in self._implications:
            if bits & cared == wanted and bits & then_cared != then_wanted:
                kept[rule_id] = False
        for rule_id, counted, turned, added, least, most in self._counts:
            if not least <= ((bits ^ turned) & counted).bit_count() + added <= most:
                kept[rule_id] = False
        return kept

    def _make_ready(self, rule_id: str, constraint: Constraint) -> None:
        match constraint:
            case Implies(left, right):
                self._implications.append((rule_id, *self._all_of(left), *self._all_of(right)))
            case Iff(left, right):
                one, other = self._all_of(left), self._all_of(right)
                self._implications += [(rule_id, *one, *other), (rule_id, *other, *one)]
            case Forbid(atoms):
                self._implications.append((rule_id, *self._all_of(atoms), *NEVER))
            case Count(atoms, least, most):
                present, absent = self._sides(atoms)
                # Of an atom and its denial one holds, whatever the assignment.
                both = present & absent
                turned = absent & ~present
                self._counts.append(
                    (rule_id, (present | absent) & ~both, turned, both.bit_count(), least, most)
                )
            case _:
                assert_never(constraint)

    def _all_of(self, atoms: Sequence[Atom]) -> Pattern:
        """The pattern in which every atom holds."""
        present, absent = self._sides(atoms)
        return NEVER if present & absent else (present | absent, present)

    def _sides(self, atoms: Sequence[Atom]) -> Pattern:
        """The bits that atoms want set, and those that they want unset."""
        present = absent = 0
        for atom in atoms:
            if atom.negated:
                absent |= self._bits[atom.members]
            else:
                present |= self._bits[atom.members]
        return present, absent
