"""How many assignments keep one policy's rules, or those of several policies at once; with some that do.

Promise: a count is exact, or there is none. Small groups are seen whole (space.py). In larger ones the questions are
taken one after the other, and of the assignments so far only that is kept which still matters: how far each rule has
come that has begun and is not settled. So the work grows with how many rules overlap, not with 2 to the number of
labels; where too many do, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import assert_never

from ticketgate.agents.policy.atoms import Atom
from ticketgate.agents.policy.rules import Constraint, Count, Forbid, Iff, Implies, Rule, atoms_of
from ticketgate.agents.policy.space import MAX_ASSIGNMENTS, Outcomes, Space

# More ways than these for the rules to stand would take longer than a person waits for lint.
MAX_STATES = 4096
# Of each kind of assignment so many are shown.
MAX_EXAMPLES = 3

# Which of the policies accept an assignment, in their order.
Accepting = tuple[bool, ...]
Selection = frozenset[str]


@dataclass(frozen=True, slots=True)
class Found:
    """How many assignments there are of a kind, and the labels of at most MAX_EXAMPLES of them."""

    count: int
    examples: tuple[Selection, ...]


def tally(
    outcomes: Sequence[Outcomes], policies: Sequence[Sequence[Rule]], *, max_states: int = MAX_STATES
) -> Mapping[Accepting, Found] | None:
    """Every assignment of these questions, by which of the policies' rules it keeps; None where that is too much."""
    if prod(len(each.labels) for each in outcomes) <= MAX_ASSIGNMENTS:
        return _seen_whole(outcomes, policies)
    return _one_by_one(outcomes, policies, max_states)


def _seen_whole(
    outcomes: Sequence[Outcomes], policies: Sequence[Sequence[Rule]]
) -> Mapping[Accepting, Found]:
    space = Space(outcomes)
    kinds: dict[Accepting, int] = {(): space.everything}
    for rules in policies:
        kept = space.everything
        for rule in rules:
            kept &= space.satisfying(rule.constraint)
        kinds = {
            (*accepting, verdict): part
            for accepting, members in kinds.items()
            for verdict, part in ((True, members & kept), (False, members & ~kept))
            if part
        }
    return {
        accepting: Found(members.bit_count(), tuple(_some(space, members)))
        for accepting, members in kinds.items()
    }


def _some(space: Space, members: int) -> Iterator[Selection]:
    for _ in range(MAX_EXAMPLES):
        labels = space.example(members)
        if labels is None:
            return
        yield frozenset(labels)
        members &= members - 1


# How far a rule has come: for `Count` how many atoms hold so far, else whether all atoms of each side do.
Progress = int | tuple[bool, ...]
# Of each policy how far its open rules have come, by their place; None once one of its rules is broken.
State = tuple[tuple[Progress, ...] | None, ...]


def _one_by_one(
    outcomes: Sequence[Outcomes], policies: Sequence[Sequence[Rule]], max_states: int
) -> Mapping[Accepting, Found] | None:
    trackers = [[_Tracker(rule.constraint) for rule in rules] for rules in policies]
    order = _in_order(outcomes, [tracker for each in trackers for tracker in each])
    done: set[str] = set()
    opened: list[list[_Tracker]] = [[] for _ in policies]
    states: dict[State, Found] = {tuple(() for _ in policies): Found(1, (frozenset(),))}
    for question in order:
        done.add(question.question_id)
        before = opened
        # A rule is open from its first question to its last.
        opened = [
            [tracker for tracker in each if tracker.begun_by(done) and not tracker.questions <= done]
            for each in trackers
        ]
        touched = [
            [tracker for tracker in each if tracker in was_open or question.question_id in tracker.questions]
            for each, was_open in zip(trackers, before, strict=True)
        ]
        following: dict[State, Found] = {}
        for state, found in states.items():
            for selection in question.selections:
                reached = tuple(
                    _reached(
                        state[place], before[place], touched[place], opened[place], question, selection, done
                    )
                    for place in range(len(policies))
                )
                here = Found(found.count, tuple(example | selection for example in found.examples))
                other = following.get(reached)
                following[reached] = here if other is None else _together(other, here)
            if len(following) > max_states:
                return None
        states = following
    kinds: dict[Accepting, Found] = {}
    for state, found in states.items():
        accepting = tuple(each is not None for each in state)
        kinds[accepting] = _together(kinds[accepting], found) if accepting in kinds else found
    return kinds


def _together(one: Found, other: Found) -> Found:
    return Found(one.count + other.count, (*one.examples, *other.examples)[:MAX_EXAMPLES])


_SETTLED = True


def _reached(
    progress: tuple[Progress, ...] | None,
    before: Sequence[_Tracker],
    touched: Sequence[_Tracker],
    opened: Sequence[_Tracker],
    question: Outcomes,
    selection: Selection,
    done: set[str],
) -> tuple[Progress, ...] | None:
    """One policy's rules after one more answer; None if one of them is broken."""
    if progress is None:
        return None
    had = dict(zip(map(id, before), progress, strict=True))
    now: dict[int, Progress] = {}
    for tracker in touched:
        came = tracker.after(had.get(id(tracker), tracker.start), question.question_id, selection)
        settled = tracker.settled(came, done)
        if settled is False:
            return None
        # What is settled stands alike for all that settled it, so that their ways join.
        now[id(tracker)] = tracker.settled_progress if settled else came
    return tuple(now[id(tracker)] for tracker in opened)


class _Tracker:
    """One constraint, followed over the questions."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        match constraint:
            case Implies(left, right) | Iff(left, right):
                self._sides: tuple[tuple[Atom, ...], ...] = (left, right)
            case Forbid(atoms) | Count(atoms):
                self._sides = (atoms,)
            case _:
                assert_never(constraint)
        self.questions = frozenset(atom.question for atom in atoms_of(constraint))
        self.start: Progress = 0 if isinstance(constraint, Count) else (True,) * len(self._sides)
        # Recognised by being of neither form: no count is negative, no constraint has no side.
        self.settled_progress: Progress = ()

    def begun_by(self, done: set[str]) -> bool:
        return not self.questions.isdisjoint(done)

    def after(self, progress: Progress, question_id: str, selection: Selection) -> Progress:
        """How far it has come with the answer to one of its questions, or to another, which changes nothing."""
        if progress == () or question_id not in self.questions:
            return progress
        held = [
            [atom.truth(selection) is True for atom in side if atom.question == question_id]
            for side in self._sides
        ]
        if isinstance(progress, int):
            return progress + sum(held[0])
        return tuple(so_far and all(more) for so_far, more in zip(progress, held, strict=True))

    def settled(self, progress: Progress, done: set[str]) -> bool | None:
        """Whether it is kept or broken whatever the remaining questions' answers are; None if that is open."""
        if progress == ():
            return True
        left_over = [any(atom.question not in done for atom in side) for side in self._sides]
        match self._constraint, progress:
            case Count(atoms, least, most), int(held):
                more = sum(atom.question not in done for atom in atoms)
                if held > most or held + more < least:
                    return False
                return True if held >= least and held + more <= most else None
            case Forbid(), (alive,):
                return True if not alive else None if left_over[0] else False
            case Implies(), (left, right):
                if not left or (right and not left_over[1]):
                    return True
                return False if not right and not left_over[0] else None
            case _, (left, right):
                if (left and left_over[0]) or (right and left_over[1]):
                    return None
                return left is right
            case _:
                raise AssertionError("a progress of another constraint")


def _in_order(outcomes: Iterable[Outcomes], trackers: Sequence[_Tracker]) -> Iterator[Outcomes]:
    """The questions such that few rules are open at a time: next comes the one that leaves the fewest."""
    left = list(outcomes)
    done: set[str] = set()
    while left:
        best = min(
            left,
            key=lambda each: sum(
                tracker.begun_by(done | {each.question_id})
                and not tracker.questions <= done | {each.question_id}
                for tracker in trackers
            ),
        )
        left.remove(best)
        done.add(best.question_id)
        yield best
