"""What lint says of levels that have values of their own: where a number could have been meant as a place.

A policy's levels once counted from 0 whatever its JSON Schema called them, so a rule that was written then reads the
same and means something else.
"""

from __future__ import annotations

from collections.abc import Iterator

from ticketgate.agents.policy.atoms import Atom, as_place
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import atoms_of
from ticketgate.agents.workbench.policy.findings import Finding
from ticketgate.agents.workbench.policy.lint_usage import label_references
from ticketgate.codecs.systemone.questions import ScoreQuestion

_REMEDY = "see that the value is meant; before values, the number was the level's place from 0"


def levels_by_value(policy: Policy) -> Iterator[Finding]:
    """Rules and effects whose number is both a level's value and, of another level, its place."""
    for rule in policy.rules:
        for atom in atoms_of(rule.constraint):
            if (told := _told(policy, atom)) is not None:
                yield Finding(
                    code="level_is_a_value",
                    message=f'rule "{rule.id}": {told}',
                    remedy=_REMEDY,
                    subjects=(rule.id,),
                    line=policy.line_of_rule(rule.id),
                )
    for effect in policy.effects:
        told_of = [told for atom in effect.when if (told := _told(policy, atom)) is not None]
        told_of += [
            f"{{labels.{name}}} is the value {_values(question)}, and not a place from 0"
            for name in dict.fromkeys(label_references(effect))
            if isinstance(question := policy.question(name), ScoreQuestion) and _has_moved(question)
        ]
        for told in told_of:
            yield Finding(
                code="level_is_a_value",
                message=f"effect {effect.place + 1} ({effect.tool}): {told}",
                remedy=_REMEDY,
                subjects=(effect.tool,),
                line=policy.line_of_effect(effect.place),
            )


def _told(policy: Policy, atom: Atom) -> str | None:
    question = policy.question(atom.question)
    if not isinstance(question, ScoreQuestion) or not _has_moved(question):
        return None
    place = as_place(atom, question)
    if place is None or place == atom.members:
        return None
    return f"{atom.text} compares the value {_values(question)}, and not the place from 0"


def _has_moved(question: ScoreQuestion) -> bool:
    return question.values is not None and question.values != question.levels


def _values(question: ScoreQuestion) -> str:
    return f"{question.names[0]} to {question.names[-1]}"
