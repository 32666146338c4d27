"""Two policies side by side: the assignments that one accepts and the other does not, counted, with examples.

Promise: counts are exact, or there is none and the examples are still proven. Labels alone are compared; thresholds,
abstention and effects are told as changes of the document, for no assignment shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Rule
from ticketgate.agents.policy.space import Outcomes, outcomes
from ticketgate.agents.workbench.policy.counting import MAX_EXAMPLES, Accepting, Found, Selection, tally
from ticketgate.agents.workbench.policy.groups import Group, connected
from ticketgate.agents.workbench.policy.logic import Case, Logic
from ticketgate.agents.workbench.policy.solver import NoSolverError, Solved
from ticketgate.codecs.values.strict import JsonValue, encode

BOTH, ONLY_OLD, ONLY_NEW = (True, True), (True, False), (False, True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Assignments whose verdict turns. `count` None: too many to count; then `examples` shows whether there are any.

    examples: the selected labels of some, sorted.
    """

    count: int | None
    examples: tuple[tuple[str, ...], ...]

    def to_json(self) -> dict[str, JsonValue]:
        """For programs."""
        count = self.count if self.count is None or self.count < 2**63 else str(self.count)
        return {"count": count, "examples": [list(each) for each in self.examples]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What changes from one policy to another.

    assignments: how many were compared. notes: what the comparison leaves out, and why. changes: what else differs,
    a sentence each.
    """

    assignments: int
    no_longer_accepted: Turned
    newly_accepted: Turned
    notes: tuple[str, ...]
    changes: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing at all changes."""
        turned = (self.no_longer_accepted, self.newly_accepted)
        return not self.changes and not self.notes and not any(each.count or each.examples for each in turned)


def compare(old: Policy, new: Policy) -> Comparison:
    """The assignments over both policies' questions whose verdict by the rules turns, and what else changes."""
    questions, notes = _shared(old, new)
    # Under both names one rule may say two things: what belongs to which policy is told by the id.
    rules = {False: _marked("old", old.rules), True: _marked("new", new.rules)}
    parts = [
        _Part.of(
            group,
            [[r for r in group.rules if r in rules[False]], [r for r in group.rules if r in rules[True]]],
        )
        for group in connected(questions, (*rules[False], *rules[True]))
    ]
    unsearched = [part for part in parts if part.kinds is None and part.why is not None]
    notes += [
        f"{', '.join(part.group.question_ids[:6])}, …: not compared, for {part.why}" for part in unsearched
    ]
    return Comparison(
        assignments=prod(part.group.assignments for part in parts),
        no_longer_accepted=_turned(parts, 0),
        newly_accepted=_turned(parts, 1),
        notes=tuple(notes),
        changes=tuple(_changes(old, new)),
    )


def _marked(mark: str, rules: Sequence[Rule]) -> tuple[Rule, ...]:
    return tuple(replace(rule, id=f"{mark} {rule.id}") for rule in rules)


def _shared(old: Policy, new: Policy) -> tuple[list[Outcomes], list[str]]:
    """The questions of either policy with the outcomes that both know."""
    found: list[Outcomes] = []
    notes: list[str] = []
    for question_id in dict.fromkeys((*old.ids, *new.ids)):
        each = [
            outcomes(question_id, one.question(question_id)) for one in (old, new) if question_id in one.ids
        ]
        if len(each) == 1:
            found += each
            continue
        common = tuple(name for name in each[0].labels if name in each[1].labels)
        lost = [
            name or f"not {question_id}" for name in (*each[0].labels, *each[1].labels) if name not in common
        ]
        if lost:
            notes.append(f"only one of the policies knows {', '.join(dict.fromkeys(lost))}: not compared")
        if not common:
            # No assignment has both, so what the rules say of it cannot be compared at all.
            common = each[1].labels
        found.append(Outcomes(question_id, common))
    return found, notes


@dataclass(frozen=True, slots=True)
class _Part:
    """One group of questions: how many of its assignments either policy accepts, or a search for some."""

    group: Group
    policies: Sequence[Sequence[Rule]]
    kinds: Mapping[Accepting, Found] | None
    logic: Logic | None = None
    why: str | None = None

    @classmethod
    def of(cls, group: Group, policies: Sequence[Sequence[Rule]]) -> _Part:
        kinds = tally(group.outcomes, policies)
        if kinds is not None:
            return cls(group, policies, kinds)
        try:
            return cls(group, policies, None, Solved(group))
        except NoSolverError as err:
            return cls(group, policies, None, None, str(err))

    def accepted_by(self, place: int) -> int | None:
        """How many assignments one policy accepts."""
        if self.kinds is None:
            return None
        return sum(found.count for accepting, found in self.kinds.items() if accepting[place])

    def accepted_by_both(self) -> int | None:
        if self.kinds is None:
            return None
        return self.kinds[BOTH].count if BOTH in self.kinds else 0

    def some_turned(self, place: int) -> Iterator[Selection]:
        """Assignments that one policy accepts and the other does not."""
        if self.kinds is not None:
            found = self.kinds.get(ONLY_OLD if place == 0 else ONLY_NEW)
            yield from found.examples if found is not None else ()
        elif self.logic is not None:
            for broken in self.policies[1 - place]:
                yield from self._searched(Case(broken=broken), self.policies[place])

    def some_kept(self, place: int) -> Selection | None:
        """An assignment that one policy accepts, if possible the other as well."""
        if self.kinds is not None:
            for accepting in (BOTH, ONLY_OLD if place == 0 else ONLY_NEW):
                if accepting in self.kinds:
                    return self.kinds[accepting].examples[0]
            return None
        for kept in ((*self.policies[0], *self.policies[1]), self.policies[place]):
            for labels in self._searched(Case(), kept):
                return labels
        return None

    def _searched(self, case: Case, kept: Sequence[Rule]) -> Iterator[Selection]:
        labels = self.logic.witness(case, kept) if self.logic is not None else None
        if labels is not None:
            yield frozenset(labels)


def _turned(parts: Sequence[_Part], place: int) -> Turned:
    accepted, both = 1, 1
    is_counted = True
    for part in parts:
        one, two = part.accepted_by(place), part.accepted_by_both()
        if one is None or two is None:
            is_counted = False
            continue
        accepted, both = accepted * one, both * two
    examples = tuple(tuple(sorted(each)) for each in _examples(parts, place))
    is_searched = all(part.why is None for part in parts)
    count = accepted - both if is_counted or accepted == 0 else None
    # What was not counted was searched, and a search that finds nothing has proven that there is nothing.
    return Turned(count=0 if count is None and is_searched and not examples else count, examples=examples)


def _examples(parts: Sequence[_Part], place: int) -> Iterator[Selection]:
    """Whole assignments: one group turns, and the others are as the policy wants them."""
    kept = [part.some_kept(place) for part in parts]
    shown = 0
    for index, part in enumerate(parts):
        others = [labels for other, labels in enumerate(kept) if other != index]
        if any(labels is None for labels in others):
            continue
        around = frozenset[str]().union(*(labels for labels in others if labels is not None))
        for labels in part.some_turned(place):
            if shown == MAX_EXAMPLES:
                return
            shown += 1
            yield labels | around


def _changes(old: Policy, new: Policy) -> Iterator[str]:
    """What differs between the documents, a sentence each."""
    yield from _settings(old, new)
    for question_id in dict.fromkeys((*old.ids, *new.ids)):
        yield from _question_changes(old, new, question_id)
    before, after = ({rule.id: rule for rule in each.rules} for each in (old, new))
    for rule_id in dict.fromkeys((*before, *after)):
        one, other = before.get(rule_id), after.get(rule_id)
        if one is None and other is not None:
            yield f"rule {rule_id} is new: {other.sentence}"
        elif one is not None and other is None:
            yield f"rule {rule_id} is gone: {one.sentence}"
        elif one is not None and other is not None and one.sentence != other.sentence:
            yield f"rule {rule_id} said: {one.sentence}; it says: {other.sentence}"
        elif one is not None and other is not None and one.message != other.message:
            yield f"rule {rule_id} was told as: {one.message}; it is told as: {other.message}"
    if old.effects != new.effects:
        tools = [", ".join(effect.tool for effect in each.effects) or "none" for each in (old, new)]
        yield f"the effects change: {tools[0]} before, {tools[1]} now"


def _settings(old: Policy, new: Policy) -> Iterator[str]:
    for name in ("name", "version", "abstain_below", "on_truncation"):
        one, other = getattr(old, name), getattr(new, name)
        if one != other:
            yield f"{name} was {_said(one)}, is {_said(other)}"
    if old.clean != new.clean:
        said = [", ".join(each.clean) or "nothing" for each in (old, new)]
        yield f"what is cleaned off a ticket was {said[0]}, is {said[1]}"


def _said(value: object) -> str:
    return "not set" if value is None else str(value)


def _question_changes(old: Policy, new: Policy, question_id: str) -> Iterator[str]:
    if question_id not in old.ids:
        yield f"question {question_id} is new"
        return
    if question_id not in new.ids:
        yield f"question {question_id} is gone"
        return
    values = [each.question(question_id).values for each in (old, new)]
    if values[0] != values[1]:
        said = ["its labels" if each is None else encode(list(each)).decode() for each in values]
        yield f"the values of {question_id} were {said[0]}, are {said[1]}"
    if replace(old.question(question_id), values=None) != replace(new.question(question_id), values=None):
        yield f"question {question_id} is worded otherwise"
    one, other = (each.mapped.get(question_id) for each in (old, new))
    if (one and one.path) != (other and other.path):
        said = [f"attributes.{each.path}" if each else "the model" for each in (one, other)]
        yield f"question {question_id} was answered by {said[0]}, is answered by {said[1]}"
    before, after = (each.thresholds.get(question_id) for each in (old, new))
    if before is not None and after is not None and before != after:
        yield f"threshold of {question_id} was {before!r}, is {after!r}"
