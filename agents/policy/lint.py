"""A policy read as logic: what its rules allow together, and what its author can hardly have meant.

Promise: every finding is proven over all assignments, and comes with what proves it: a core (rules of which none
can be left out) or an assignment. Questions that no rule connects are looked at apart, so what a policy may have is
a matter of its largest group; a group beyond MAX_ASSIGNMENTS is named, and nothing is said of it.
Source: DESIGN section 6.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import prod

from ticketgate.agents.policy.findings import Finding, LintReport, named_rules
from ticketgate.agents.policy.groups import Group, groups
from ticketgate.agents.policy.lint_usage import compulsory_labels, unmet_effects, unread_questions
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Rule
from ticketgate.agents.policy.space import MAX_ASSIGNMENTS

__all__ = ["MAX_ASSIGNMENTS", "Finding", "LintReport", "lint"]


def lint(policy: Policy, *, max_assignments: int = MAX_ASSIGNMENTS) -> LintReport:
    """Everything there is to say of a policy, errors first, each severity in the order of the file."""
    every = groups(policy)
    examined = [group for group in every if group.assignments <= max_assignments]
    findings = [_too_large(group, max_assignments) for group in every if group not in examined]
    for group in examined:
        if not group.rules:
            continue
        if group.accepted:
            findings += [*_labels(group), *_pairs(group)]
        else:
            findings.append(_unsatisfiable(group))
        findings += _rules(group)
    findings += unmet_effects(policy, examined)
    findings += unread_questions(policy, every)
    findings += compulsory_labels(policy)
    rank = ("error", "warning", "note")
    return LintReport(
        findings=tuple(sorted(findings, key=lambda finding: rank.index(finding.severity))),
        assignments=prod(group.assignments for group in every),
        acceptable=None
        if len(examined) < len(every)
        else prod(group.accepted.bit_count() for group in every),
    )


def _too_large(group: Group, limit: int) -> Finding:
    return Finding(
        code="too_large",
        message=f"{len(group.question_ids)} questions hang together, with more than {limit} assignments: not examined",
        remedy="split the rules that connect them, if they need not be connected",
        subjects=group.question_ids,
    )


def _unsatisfiable(group: Group) -> Finding:
    core = group.core(group.space.everything)
    return Finding(
        code="unsatisfiable",
        message=f"no assignment keeps {named_rules(core)}: every ticket goes to review",
        remedy="loosen or remove one of them",
        subjects=group.question_ids,
        core=core,
    )


def _labels(group: Group) -> Iterator[Finding]:
    """Labels that no accepted ticket has, and those that every accepted ticket has."""
    for question in group.outcomes:
        names = [name for name in question.labels if name is not None]
        for name in names:
            without = group.space.everything ^ group.space.having(name)
            if not group.accepted & without:
                core = group.core(without)
                yield Finding(
                    code="label_always_forced",
                    message=f"every accepted ticket has {name}, by {named_rules(core)}",
                    remedy="loosen a rule, or decide without asking",
                    subjects=(name,),
                    core=core,
                )
                # Of a choice or score the other labels are then never accepted, which is the same news.
                break
        else:
            for name in names:
                if not group.accepted & group.space.having(name):
                    core = group.core(group.space.having(name))
                    yield Finding(
                        code="label_never_accepted",
                        message=f"no accepted ticket has {name}, by {named_rules(core)}",
                        remedy="loosen a rule, if tickets with it should be accepted",
                        subjects=(name,),
                        core=core,
                    )


def _pairs(group: Group) -> Iterator[Finding]:
    """Labels of two questions that are accepted each, but never together."""
    space, accepted = group.space, group.accepted
    for one, other in itertools.combinations(group.outcomes, 2):
        for pair in itertools.product(one.labels, other.labels):
            first, second = pair
            if first is None or second is None:
                continue
            both = space.having(first) & space.having(second)
            if accepted & both or not accepted & space.having(first) or not accepted & space.having(second):
                continue
            core = group.core(both)
            yield Finding(
                code="impossible_pair",
                message=f"{first} and {second} are never accepted together, by {named_rules(core)}",
                remedy="loosen a rule, if they may stand together",
                subjects=(first, second),
                core=core,
                example=space.example(both),
            )


def _rules(group: Group) -> Iterator[Finding]:
    """Rules that say nothing, or nothing that others do not say."""
    telling: dict[int, Rule] = {}
    for rule in group.rules:
        satisfying = group.satisfying(rule)
        if satisfying == group.space.everything:
            yield Finding(
                code="vacuous_rule",
                message=f'rule "{rule.id}" can never be broken',
                remedy="remove it, or write what was meant",
                subjects=(rule.id,),
                core=(rule.id,),
                example=group.space.example(satisfying),
            )
        elif satisfying in telling:
            earlier = telling[satisfying]
            yield Finding(
                code="duplicate_rule",
                message=f'rule "{rule.id}" says the same as rule "{earlier.id}"',
                remedy="remove one of them",
                subjects=(rule.id,),
                core=(earlier.id,),
                example=group.space.example(group.space.everything ^ satisfying),
            )
        else:
            telling[satisfying] = rule
    if not group.accepted:
        # Of rules that contradict each other any other rule follows.
        return
    for satisfying, rule in telling.items():
        others = [other for other in telling.values() if other is not rule]
        breaking = group.space.everything ^ satisfying
        if group.kept_by(others) & breaking:
            continue
        core = group.core(breaking, among=others)
        yield Finding(
            code="redundant_rule",
            message=f'rule "{rule.id}" follows from {named_rules(core)}',
            remedy="remove it, unless its message is wanted beside theirs",
            subjects=(rule.id,),
            core=core,
            example=group.space.example(breaking),
        )
