"""A group too large to be seen whole, put to a SAT solver: python-sat, the extra `lint`.

Promise: what is said here is proven as strictly as by enumeration; only the number of assignments is not known here
(counting.py counts). Each rule has one literal that is true exactly when the rule holds, so a rule is kept, broken or
left out by assuming the literal, its denial or nothing, and one solver serves a whole lint.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import assert_never

from ticketgate.agents.policy.atoms import Atom
from ticketgate.agents.policy.rules import Constraint, Count, Forbid, Iff, Implies, Rule
from ticketgate.agents.policy.space import Outcomes
from ticketgate.agents.workbench.policy.groups import Group
from ticketgate.agents.workbench.policy.logic import Case

# So many models are looked through before the solver is asked; longer than that, asking is quicker.
_MODELS_KEPT = 256


class NoSolverError(RuntimeError):
    """python-sat is not installed. What is large goes unsearched, and lint says so."""


class Solved:
    """The assignments of any group. Raises NoSolverError if python-sat is not installed.

    A choice has exactly one label and a score exactly one level, which makes its bands (`anger>=2`) a chain.
    """

    def __init__(self, group: Group) -> None:
        try:
            # Here, for the extra may be missing, and `ticketgate check` need not load a solver.
            from pysat.solvers import Minisat22
        except ImportError as err:
            raise NoSolverError("python-sat is not installed; pip install 'ticketgate[lint]'") from err
        self.group = group
        self._solver = Minisat22()
        self._last = 1
        self._true = 1
        self._solver.add_clause([self._true])
        self._labels: dict[str, int] = {}
        self._gates: dict[frozenset[int], int] = {}
        for each in group.outcomes:
            names = [name for name in each.labels if name is not None]
            self._labels.update((name, self._new()) for name in names)
            if None not in each.labels:
                self._exactly_one([self._labels[name] for name in names])
        # What `witness` looks for is mostly an assignment with few labels.
        self._solver.set_phases([-literal for literal in self._labels.values()])
        self._holds = {rule.id: self._constraint(rule.constraint) for rule in group.rules}
        self._seen: deque[frozenset[int]] = deque(maxlen=_MODELS_KEPT)

    def possible(self, case: Case, kept: Sequence[Rule]) -> bool:
        """See Logic."""
        wanted = [*self._of(case), *(self._holds[rule.id] for rule in kept)]
        # A model that was found for another question often answers this one too.
        if any(model.issuperset(wanted) for model in self._seen):
            return True
        model = self._model(wanted)
        if model is not None:
            self._seen.append(model)
        return model is not None

    def witness(self, case: Case, kept: Sequence[Rule] = ()) -> tuple[str, ...] | None:
        """See Logic. Of all assignments it is the one that enumeration shows: the last question's outcome is the
        earliest that there is, then the last but one's, and so on."""
        fixed = [*self._of(case), *(self._holds[rule.id] for rule in kept)]
        model = self._model(fixed)
        if model is None:
            return None
        for question in reversed(self.group.outcomes):
            for name in question.labels:
                wanted = self._outcome(question, name)
                if wanted not in model and (better := self._model([*fixed, wanted])) is not None:
                    model = better
                if wanted in model:
                    fixed.append(wanted)
                    break
        return tuple(sorted(name for name, literal in self._labels.items() if literal in model))

    def _outcome(self, question: Outcomes, name: str | None) -> int:
        return -self._labels[question.question_id] if name is None else self._labels[name]

    def _model(self, wanted: Sequence[int]) -> frozenset[int] | None:
        return frozenset(self._solver.get_model() or ()) if self._solver.solve(assumptions=wanted) else None

    def same(self, one: Rule, other: Rule) -> bool:
        """See Logic."""
        return not self.possible(Case(broken=one), [other]) and not self.possible(Case(broken=other), [one])

    def _of(self, case: Case) -> list[int]:
        atoms = [self._atom(atom) for atom in case.atoms]
        return atoms if case.broken is None else [*atoms, -self._holds[case.broken.id]]

    # Literals that are true exactly when something holds. Each is a definition, and adds no demand.

    def _new(self) -> int:
        self._last += 1
        return self._last

    def _atom(self, atom: Atom) -> int:
        # A label that is left out of the group is one that no assignment has.
        literal = self._any([self._labels[name] for name in sorted(atom.members) if name in self._labels])
        return -literal if atom.negated else literal

    def _constraint(self, constraint: Constraint) -> int:
        match constraint:
            case Implies(left, right):
                return self._any([-self._all_of(left), self._all_of(right)])
            case Iff(left, right):
                one, other = self._all_of(left), self._all_of(right)
                return self._any([self._all([one, other]), self._all([-one, -other])])
            case Forbid(atoms):
                return -self._all_of(atoms)
            case Count(atoms, least, most):
                return self._counted([self._atom(atom) for atom in atoms], least, most)
            case _:
                assert_never(constraint)

    def _all_of(self, atoms: Sequence[Atom]) -> int:
        return self._all([self._atom(atom) for atom in atoms])

    def _counted(self, literals: Sequence[int], least: int, most: int) -> int:
        # at_least[n]: n of the literals seen so far hold.
        at_least = [self._true] + [-self._true] * (most + 1)
        for literal in literals:
            for n in range(most + 1, 0, -1):
                at_least[n] = self._any([at_least[n], self._all([at_least[n - 1], literal])])
        return self._all([at_least[least], -at_least[most + 1]])

    def _any(self, literals: Sequence[int]) -> int:
        return -self._all([-literal for literal in literals])

    def _all(self, literals: Sequence[int]) -> int:
        if -self._true in literals:
            return -self._true
        needed = frozenset(literals) - {self._true}
        if len(needed) < 2:
            return next(iter(needed), self._true)
        if needed not in self._gates:
            every = self._gates[needed] = self._new()
            in_order = sorted(needed)
            for literal in in_order:
                self._solver.add_clause([-every, literal])
            self._solver.add_clause([every, *(-literal for literal in in_order)])
        return self._gates[needed]

    def _exactly_one(self, literals: Sequence[int]) -> None:
        self._solver.add_clause(list(literals))
        for one, other in itertools.combinations(literals, 2):
            self._solver.add_clause([-one, -other])
