"""What lint says of how questions, effects and labels are used, beside what the rules allow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ticketgate.agents.policy.effects import EffectTemplate, LabelOf, Template, Text
from ticketgate.agents.policy.examples import missing_kinds
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Count
from ticketgate.agents.workbench.policy.findings import Finding, named_rules
from ticketgate.agents.workbench.policy.groups import Group
from ticketgate.agents.workbench.policy.logic import ANYTHING, Case, Logic, core
from ticketgate.codecs.systemone.questions import ChoiceQuestion


def unmet_effects(policy: Policy, examined: Sequence[Logic]) -> Iterator[Finding]:
    """Effects whose condition no accepted ticket meets."""
    # Where nothing is accepted at all, that is the news, and not each effect.
    satisfiable = [logic for logic in examined if logic.possible(ANYTHING, logic.group.rules)]
    for effect in policy.effects:
        for logic in satisfiable:
            wanted = Case(tuple(atom for atom in effect.when if atom.question in logic.group.question_ids))
            if wanted.atoms and not logic.possible(wanted, logic.group.rules):
                by = core(logic, wanted)
                reason = f"by {named_rules(by)}" if by else "for it contradicts itself"
                yield Finding(
                    code="effect_never_proposed",
                    message=f"effect {effect.place + 1} ({effect.tool}) applies to no accepted ticket, {reason}",
                    remedy="mend its condition, or loosen a rule",
                    subjects=(effect.tool,),
                    core=by,
                    example=logic.witness(wanted),
                    line=policy.line_of_effect(effect.place),
                )
                break


def unread_questions(policy: Policy, every: Sequence[Group]) -> Iterator[Finding]:
    """Questions that no rule names, and of those the ones that no effect reads either."""
    read = {question_id for effect in policy.effects for question_id in _read_by(effect)}
    for question_id in (group.question_ids[0] for group in every if not group.rules):
        line = policy.line_of_question(question_id)
        if question_id in read:
            yield Finding(
                code="question_in_no_rule",
                message=f'question "{question_id}" is in no rule: whatever its answer, effects follow from it',
                remedy="add a rule that it takes part in, if there is one",
                subjects=(question_id,),
                line=line,
            )
        else:
            yield Finding(
                code="unused_question",
                message=f'question "{question_id}" is in no rule and no effect: its answer changes nothing',
                remedy="remove it, unless it is asked for the record",
                subjects=(question_id,),
                line=line,
            )


# Where records go. A label of such a name sends nothing there: only a broken rule sends a ticket to review.
_TOPICS = frozenset({"dispatch", "review", "repairs", "receipts", "dead-letter", "dead_letter"})


def labels_like_topics(policy: Policy) -> Iterator[Finding]:
    """Labels from whose names a reader expects that they send tickets somewhere, and from which nothing follows."""
    read = {question_id for effect in policy.effects for question_id in _read_by(effect)}
    for question_id in policy.ids:
        question = policy.question(question_id)
        labels = question.labels if isinstance(question, ChoiceQuestion) else (question_id,)
        for label in labels:
            if question_id not in read and label.lower() in _TOPICS:
                yield Finding(
                    code="label_like_topic",
                    message=f'label "{label}" is named like a topic and leads to no effect: a ticket that has it is'
                    " dispatched like any other",
                    remedy='name it for what it means, such as "needs_agent", and say in an effect what follows; only'
                    " a broken rule sends a ticket to review",
                    subjects=(label,),
                    line=policy.line_of_question(question_id),
                )


def _read_by(effect: EffectTemplate) -> Iterator[str]:
    """The questions that an effect's condition and arguments name."""
    for atom in effect.when:
        yield atom.question
    yield from label_references(effect)


def label_references(effect: EffectTemplate) -> Iterator[str]:
    """The questions that an effect's arguments name."""
    todo: list[Template] = list(effect.arguments.values())
    while todo:
        match todo.pop():
            case LabelOf(question_id, _):
                yield question_id
            case Text(parts):
                todo += parts
            case list() as items:
                todo += items
            case dict() as members:
                todo += members.values()
            case _:
                pass


# Labels by which a model can say that no other label fits.
_NONE_WORDS = frozenset(
    [
        "else",
        "misc",
        "na",
        "neither",
        "none",
        "nothing",
        "other",
        "others",
        "unclear",
        "undecided",
        "unknown",
        "unsure",
    ]
)


def compulsory_labels(policy: Policy) -> Iterator[Finding]:
    """Where one of several labels must be taken, though none may fit."""
    for question_id, question in policy.questions.items():
        if isinstance(question, ChoiceQuestion) and not any(map(_says_none, question.labels)):
            yield Finding(
                code="choice_without_none",
                message=f'question "{question_id}" must be answered with one of its labels, and none of them says none',
                remedy='add a label such as "other", and say in a rule or effect what becomes of it',
                subjects=(question_id,),
                example=(f"{question_id}={question.labels[0]}",),
                line=policy.line_of_question(question_id),
            )
    for rule in policy.rules:
        match rule.constraint:
            case Count(atoms, 1, 1) if len({atom.question for atom in atoms}) == len(atoms):
                if not any(_says_none(atom.text) for atom in atoms):
                    yield Finding(
                        code="compulsory_label",
                        message=f'rule "{rule.id}" sends every ticket to which none of its labels applies to review',
                        remedy='add a label that says none, such as "other", if such tickets should be accepted',
                        subjects=tuple(atom.text for atom in atoms),
                        core=(rule.id,),
                        example=(),
                        line=policy.line_of_rule(rule.id),
                    )
            case _:
                pass


def missing_examples(policy: Policy) -> Iterator[Finding]:
    """Questions whose author has not written down what was meant."""
    for question_id in policy.questions:
        kinds = missing_kinds(policy.examples, question_id)
        if kinds:
            yield Finding(
                code="examples_missing",
                message=f'question "{question_id}" lacks the example{"s"[: len(kinds) - 1]} {", ".join(kinds)}',
                remedy=f"write [questions.{question_id}.examples] with a state that fits, one that means another"
                " label, and one that leaves it unclear",
                subjects=(question_id,),
                line=policy.line_of_question(question_id),
            )


def _says_none(name: str) -> bool:
    return not _NONE_WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower().replace("n/a", "na")))
