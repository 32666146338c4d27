"""A policy read as logic: what its rules allow together, and what its author can hardly have meant.

Promise: every finding is proven over all assignments, and comes with what proves it: a core (rules of which none
can be left out) or an assignment. Questions that no rule connects are looked at apart. A group of up to
MAX_ASSIGNMENTS is seen whole, a larger one is searched by a SAT solver, and where there is none that is said.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import prod

from ticketgate.agents.plural import counted
from ticketgate.agents.policy.errors import PolicyError
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Rule
from ticketgate.agents.policy.space import MAX_ASSIGNMENTS
from ticketgate.agents.workbench.policy.counting import tally
from ticketgate.agents.workbench.policy.findings import Finding, LintReport, named_rules
from ticketgate.agents.workbench.policy.groups import Group, groups
from ticketgate.agents.workbench.policy.lint_usage import (
    compulsory_labels,
    labels_like_topics,
    missing_examples,
    unmet_effects,
    unread_questions,
)
from ticketgate.agents.workbench.policy.lint_values import levels_by_value
from ticketgate.agents.workbench.policy.logic import ANYTHING, Case, Enumerated, Logic, core, having, lacking
from ticketgate.agents.workbench.policy.solver import NoSolverError, Solved

__all__ = ["MAX_ASSIGNMENTS", "Finding", "LintReport", "lint", "refused"]


def lint(policy: Policy, *, max_assignments: int = MAX_ASSIGNMENTS) -> LintReport:
    """Everything there is to say of a policy, errors first, each severity in the order of the file.

    max_assignments: groups of more are put to the solver.
    """
    every = groups(policy)
    findings: list[Finding] = []
    examined: list[Logic] = []
    acceptable: int | None = 1
    for group in every:
        logic = _logic(group, max_assignments)
        if isinstance(logic, NoSolverError):
            findings.append(_not_searched(policy, group, max_assignments, logic))
            acceptable = _times(acceptable, _acceptable(group))
            continue
        examined.append(logic)
        if not group.rules:
            acceptable = _times(acceptable, group.assignments)
            continue
        is_satisfiable = logic.possible(ANYTHING, group.rules)
        if is_satisfiable:
            findings += [*_labels(policy, logic), *_pairs(policy, logic)]
        else:
            findings.append(_unsatisfiable(policy, logic))
        acceptable = _times(acceptable, _acceptable(group) if is_satisfiable else 0)
        findings += _rules(policy, logic, is_satisfiable=is_satisfiable)
    findings += unmet_effects(policy, examined)
    findings += unread_questions(policy, every)
    findings += labels_like_topics(policy)
    findings += compulsory_labels(policy)
    findings += levels_by_value(policy)
    findings += missing_examples(policy)
    return LintReport.of(
        findings, assignments=prod(group.assignments for group in every), acceptable=acceptable
    )


def refused(error: PolicyError) -> LintReport:
    """The report on a file that is no policy: every problem is a finding, and nothing was searched."""
    return LintReport.of(
        [
            Finding(code=each.code, message=each.what, remedy=each.remedy, subjects=(), line=each.line)
            for each in error.problems
        ],
        assignments=None,
        acceptable=None,
    )


def _logic(group: Group, max_assignments: int) -> Logic | NoSolverError:
    if group.assignments <= max_assignments:
        return Enumerated(group)
    try:
        return Solved(group)
    except NoSolverError as err:
        return err


def _acceptable(group: Group) -> int | None:
    kinds = tally(group.outcomes, [group.rules])
    if kinds is None:
        return None
    return kinds[(True,)].count if (True,) in kinds else 0


def _times(one: int | None, other: int | None) -> int | None:
    """The product, where None is a number that nobody knows: nothing of it is still nothing."""
    if one == 0 or other == 0:
        return 0
    return None if one is None or other is None else one * other


def _first_line(policy: Policy, rule_ids: tuple[str, ...]) -> int | None:
    return policy.line_of_rule(rule_ids[0]) if rule_ids else None


def _not_searched(policy: Policy, group: Group, limit: int, why: NoSolverError) -> Finding:
    return Finding(
        code="not_searched",
        message=f"{len(group.question_ids)} questions hang together, with more than {limit} assignments:"
        f" what is allowed by their {counted(len(group.rules), 'rule')} was not searched, for {why}",
        remedy="install the extra, or split the rules that connect them",
        subjects=group.question_ids,
        line=policy.line_of_question(group.question_ids[0]),
    )


def _unsatisfiable(policy: Policy, logic: Logic) -> Finding:
    by = core(logic, ANYTHING)
    return Finding(
        code="unsatisfiable",
        message=f"no assignment keeps {named_rules(by)}: every ticket goes to review",
        remedy="loosen or remove one of them",
        subjects=logic.group.question_ids,
        core=by,
        line=_first_line(policy, by),
    )


def _labels(policy: Policy, logic: Logic) -> Iterator[Finding]:
    """Labels that no accepted ticket has, and those that every accepted ticket has."""
    rules = logic.group.rules
    for question in logic.group.outcomes:
        line = policy.line_of_question(question.question_id)
        names = [name for name in question.labels if name is not None]
        for name in names:
            without = Case((lacking(question.question_id, name),))
            if not logic.possible(without, rules):
                by = core(logic, without)
                yield Finding(
                    code="label_always_forced",
                    message=f"every accepted ticket has {name}, by {named_rules(by)}",
                    remedy="loosen a rule, or decide without asking",
                    subjects=(name,),
                    core=by,
                    example=logic.witness(without),
                    line=line,
                )
                # Of a choice or score the other labels are then never accepted, which is the same news.
                break
        else:
            for name in names:
                with_it = Case((having(question.question_id, name),))
                if not logic.possible(with_it, rules):
                    by = core(logic, with_it)
                    yield Finding(
                        code="label_never_accepted",
                        message=f"no accepted ticket has {name}, by {named_rules(by)}",
                        remedy="loosen a rule, if tickets with it should be accepted",
                        subjects=(name,),
                        core=by,
                        example=logic.witness(with_it),
                        line=line,
                    )


def _pairs(policy: Policy, logic: Logic) -> Iterator[Finding]:
    """Labels of two questions that are accepted each, but never together."""
    rules = logic.group.rules
    atoms = {
        question.question_id: [
            atom
            for name in question.labels
            if name is not None and logic.possible(Case((atom := having(question.question_id, name),)), rules)
        ]
        for question in logic.group.outcomes
    }
    for one, other in itertools.combinations(atoms, 2):
        for pair in itertools.product(atoms[one], atoms[other]):
            both = Case(pair)
            if logic.possible(both, rules):
                continue
            by = core(logic, both)
            first, second = (atom.text for atom in pair)
            yield Finding(
                code="impossible_pair",
                message=f"{first} and {second} are never accepted together, by {named_rules(by)}",
                remedy="loosen a rule, if they may stand together",
                subjects=(first, second),
                core=by,
                example=logic.witness(both),
                line=_first_line(policy, by),
            )


def _rules(policy: Policy, logic: Logic, *, is_satisfiable: bool) -> Iterator[Finding]:
    """Rules that say nothing, or nothing that others do not say."""
    telling: list[Rule] = []
    for rule in logic.group.rules:
        line = policy.line_of_rule(rule.id)
        if not logic.possible(Case(broken=rule), ()):
            yield Finding(
                code="vacuous_rule",
                message=f'rule "{rule.id}" can never be broken',
                remedy="remove it, or write what was meant",
                subjects=(rule.id,),
                core=(rule.id,),
                example=logic.witness(ANYTHING),
                line=line,
            )
        elif (earlier := next((each for each in telling if logic.same(each, rule)), None)) is not None:
            yield Finding(
                code="duplicate_rule",
                message=f'rule "{rule.id}" says the same as rule "{earlier.id}"',
                remedy="remove one of them",
                subjects=(rule.id,),
                core=(earlier.id,),
                example=logic.witness(Case(broken=rule)),
                line=line,
            )
        else:
            telling.append(rule)
    if not is_satisfiable:
        # Of rules that contradict each other any other rule follows.
        return
    for rule in telling:
        others = [other for other in telling if other is not rule]
        breaking = Case(broken=rule)
        if logic.possible(breaking, others):
            continue
        by = core(logic, breaking, others)
        yield Finding(
            code="redundant_rule",
            message=f'rule "{rule.id}" follows from {named_rules(by)}',
            remedy="remove it, unless its message is wanted beside theirs",
            subjects=(rule.id,),
            core=by,
            example=logic.witness(breaking),
            line=policy.line_of_rule(rule.id),
        )
