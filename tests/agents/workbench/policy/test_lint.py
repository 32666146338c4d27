"""Each finding of lint by a policy that has it and one that has not, and all of them against brute force."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from ticketgate.agents.policy import PolicyError, parse_policy, violations
from ticketgate.agents.policy.space import outcomes
from ticketgate.agents.workbench.policy.counting import _one_by_one, _seen_whole
from ticketgate.agents.workbench.policy.findings import SEVERITIES
from ticketgate.agents.workbench.policy.lint import MAX_ASSIGNMENTS, Finding, LintReport, lint, refused

from ....support.deciding import policy, small
from ....support.random_policies import Drawn, drawn_policies, labels_of, naive_rule

# Groups of more assignments are put to the solver: with 0 all are.
BY_ENUMERATION, BY_SOLVER = MAX_ASSIGNMENTS, 0
ways = pytest.mark.parametrize("max_assignments", [BY_ENUMERATION, BY_SOLVER], ids=["enumeration", "solver"])


def linted(rest: str, *, nouls: str = "abc", max_assignments: int = BY_ENUMERATION) -> LintReport:
    try:
        return lint(parse_policy(small(rest, nouls=nouls)), max_assignments=max_assignments)
    except PolicyError as err:
        return refused(err)


def found(report: LintReport, code: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.code == code]


def rule(text: str, rule_id: str = "r") -> str:
    return f'[[rules]]\nid = "{rule_id}"\n{text}\n'


KIND = '[questions.kind]\ntype = "choice"\ninstructions = "?"\ncriteria = { bug = "1", wish = "2", other = "3" }\n'
ANGER = '[questions.anger]\ntype = "score"\ninstructions = "?"\ncriteria = ["low", "mid", "high"]\n'
REVIEW = '[questions.review]\ntype = "noul"\ninstructions = "?"\n'
EFFECT = '[[effects]]\ntool = "t"\n'
ALL_THREE = '[questions.{0}.examples]\nfits = "yes"\nother = "no"\nunclear = "hm"\n'

MAPPED_KIND = (
    '[questions.kind]\ntype = "choice"\nfrom = "attributes.kind"\ncriteria = { bug = "1", wish = "2" }\n'
)
A_REQUIRES_B = rule('implies = ["a", "b"]', "x")
NOT_BOTH = rule('excludes = ["a", "b"]')

# A code, a policy that has the finding, its subjects and its core.
FROM_ONE = '\n[questions.p]\ntype = "score"\ncriteria = ["x", "y"]\nvalues = [1, 2]\n'

HAVE: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]] = [
    ("unsatisfiable", rule('forbid = ["a"]', "x") + rule('any_of = ["b"]') + rule('any_of = ["a"]', "y"),
     ("a",), ("x", "y")),
    ("unsatisfiable", rule('iff = ["a", "!a"]'), ("a",), ("r",)),
    ("unsatisfiable", KIND + rule('any_of = ["a"]', "x") + rule('implies = ["a", ["kind=bug", "kind=wish"]]', "y"),
     ("a", "kind"), ("x", "y")),
    ("label_never_accepted", A_REQUIRES_B + rule('excludes = ["a", "b"]', "y"), ("a",), ("x", "y")),
    ("label_never_accepted", KIND + rule('forbid = ["kind=wish"]'), ("kind=wish",), ("r",)),
    ("label_never_accepted", ANGER + rule('any_of = ["anger<=1"]'), ("anger=2",), ("r",)),
    ("label_always_forced", rule('any_of = ["a"]'), ("a",), ("r",)),
    ("label_always_forced", KIND + rule('any_of = ["kind!=bug"]', "x") + rule('forbid = ["kind=other"]', "y"),
     ("kind=wish",), ("x", "y")),
    ("vacuous_rule", rule('at_most = { count = 2, of = ["a", "b"] }'), ("r",), ("r",)),
    ("vacuous_rule", KIND + rule('implies = [["kind=bug", "kind=wish"], "a"]'), ("r",), ("r",)),
    ("vacuous_rule", ANGER + rule('implies = ["anger>=2", "anger>=1"]'), ("r",), ("r",)),
    ("vacuous_rule", rule('implies = ["a", "a"]'), ("r",), ("r",)),
    ("duplicate_rule", A_REQUIRES_B + rule('forbid = ["a", "!b"]', "y"), ("y",), ("x",)),
    ("duplicate_rule", A_REQUIRES_B + rule('implies = ["!b", "!a"]', "y"), ("y",), ("x",)),
    ("redundant_rule", A_REQUIRES_B + rule('implies = ["b", "c"]', "y") + rule('implies = ["a", "c"]', "z"),
     ("z",), ("x", "y")),
    ("impossible_pair", A_REQUIRES_B + rule('excludes = ["b", "c"]', "y"), ("a", "c"), ("x", "y")),
    ("impossible_pair", KIND + rule('implies = ["kind=bug", "!a"]'), ("a", "kind=bug"), ("r",)),
    ("question_in_no_rule", NOT_BOTH + f'{EFFECT}when = "c"', ("c",), ()),
    ("question_in_no_rule", NOT_BOTH + f'{EFFECT}arguments = {{ x = ["is {{labels.c}}"] }}', ("c",), ()),
    ("unused_question", NOT_BOTH, ("c",), ()),
    ("choice_without_none", KIND.replace('other = "3"', 'praise = "3"'), ("kind",), ()),
    ("label_like_topic", KIND.replace('other = "3"', 'other = "3", review = "4"'), ("review",), ()),
    ("label_like_topic", REVIEW + rule('implies = ["a", "review"]'), ("review",), ()),
    ("compulsory_label", rule('exactly_one = ["a", "b"]'), ("a", "b"), ("r",)),
    ("level_is_a_value", FROM_ONE + rule('implies = ["p>=1", "a"]'), ("r",), ()),
    ("effect_never_proposed", NOT_BOTH + f'{EFFECT}when = ["a", "b"]', ("t",), ("r",)),
    ("effect_never_proposed", f'{EFFECT}when = ["a", "!a"]', ("t",), ()),
    ("effect_never_proposed", KIND + f'{EFFECT}when = ["kind=bug", "kind=wish"]', ("t",), ()),
    ("examples_missing", NOT_BOTH, ("a",), ()),
    ("examples_missing", ALL_THREE.format("a").replace('unclear = "hm"', ""), ("a",), ()),
    ("unknown_id", rule('implies = ["a", "z"]'), (), ()),
    ("unknown_id", KIND + rule('forbid = ["kind=crash"]'), (), ()),
    ("unknown_id", f'{EFFECT}arguments = {{ x = "{{labels.z}}" }}', (), ()),
    ("threshold_out_of_range", KIND.replace('"choice"', '"noul"\nthreshold = 0'), (), ()),
    ("threshold_out_of_range", KIND.replace('"choice"', '"noul"\nthreshold = 1.01'), (), ()),
    ("invalid", rule('at_least = { count = 3, of = ["a", "b"] }'), (), ()),
]  # fmt: skip

# A code, and a policy that has not the finding.
HAVE_NOT: list[tuple[str, str]] = [
    ("unsatisfiable", rule('forbid = ["a"]', "x") + rule('any_of = ["a", "b"]', "y")),
    ("label_never_accepted", A_REQUIRES_B + rule('excludes = ["a", "c"]', "y")),
    ("label_never_accepted", KIND + rule('any_of = ["kind=bug"]')),  # told as a forced label
    ("label_always_forced", rule('any_of = ["a", "b"]')),
    ("vacuous_rule", rule('at_most = { count = 1, of = ["a", "b"] }')),
    ("vacuous_rule", ANGER + rule('implies = ["anger>=1", "anger>=2"]')),
    ("duplicate_rule", A_REQUIRES_B + rule('implies = ["b", "a"]', "y")),
    ("redundant_rule", A_REQUIRES_B + rule('implies = ["b", "c"]', "y") + rule('implies = ["c", "a"]', "z")),
    ("redundant_rule", A_REQUIRES_B + rule('forbid = ["a", "!b"]', "y")),  # told as a duplicate
    ("impossible_pair", A_REQUIRES_B + rule('implies = ["b", "c"]', "y")),
    ("impossible_pair", KIND),  # the labels of a choice exclude each other by themselves
    ("question_in_no_rule", rule('forbid = ["a", "b", "c"]')),
    ("unused_question", NOT_BOTH + f'{EFFECT}when = "!c"'),
    ("choice_without_none", KIND),
    ("label_like_topic", REVIEW + f'{EFFECT}when = "review"\n'),
    ("label_like_topic", KIND),
    ("choice_without_none", MAPPED_KIND),
    ("compulsory_label", rule('at_most = { count = 1, of = ["a", "b"] }')),
    ("level_is_a_value", FROM_ONE.replace("[1, 2]", "[0, 1]") + rule('implies = ["p>=1", "a"]')),
    ("effect_never_proposed", NOT_BOTH + f'{EFFECT}when = ["a", "!b"]'),
    ("examples_missing", "".join(map(ALL_THREE.format, "abc"))),
    ("unknown_id", A_REQUIRES_B),
    ("threshold_out_of_range", '[questions.d]\ntype = "noul"\ninstructions = "?"\nthreshold = 1'),
    ("invalid", A_REQUIRES_B),
    ("not_searched", NOT_BOTH),
    ("unreadable", NOT_BOTH),
]  # fmt: skip


@ways
@pytest.mark.parametrize(("code", "text", "subjects", "core"), HAVE)
def test_a_policy_that_has_it(
    code: str, text: str, subjects: tuple[str, ...], core: tuple[str, ...], max_assignments: int
) -> None:
    findings = found(linted(text, max_assignments=max_assignments), code)

    assert (subjects, core) in [(each.subjects, each.core) for each in findings], findings
    for finding in findings:
        assert finding.message
        assert finding.remedy
        assert finding.line
        assert finding.severity == SEVERITIES[code]


@ways
@pytest.mark.parametrize(("code", "text"), HAVE_NOT)
def test_a_policy_that_has_it_not(code: str, text: str, max_assignments: int) -> None:
    assert found(linted(text, max_assignments=max_assignments), code) == []


def test_every_finding_has_both_kinds_of_test() -> None:
    # Those two have tests of their own: without the solver, and of the command.
    assert {code for code, *_ in HAVE} | {"not_searched", "unreadable"} == set(SEVERITIES)
    assert {code for code, _ in HAVE_NOT} == set(SEVERITIES)


def test_findings_name_their_lines() -> None:
    text = small(rule('any_of = ["a"]', "x") + rule('forbid = ["a"]', "y") + rule('forbid = ["z"]', "w"))
    lines = text.splitlines()

    report = refused_or_linted(text)
    mended = refused_or_linted(text.replace('["z"]', '["b"]'))

    assert "forbid" in lines[(report.findings[0].line or 0) - 1]
    unsatisfiable = found(mended, "unsatisfiable")[0]
    assert lines[(unsatisfiable.line or 0)] == 'id = "x"'


def refused_or_linted(text: str) -> LintReport:
    try:
        return lint(parse_policy(text))
    except PolicyError as err:
        return refused(err)


# The seed's policy


@ways
def test_the_seeds_policy_accepts_8_of_32_and_urgent_with_auto_reply_is_impossible(
    max_assignments: int,
) -> None:
    report = lint(policy(), max_assignments=max_assignments)

    assert (report.acceptable, report.assignments) == (8, 32)
    assert not report.has_errors
    pairs = {each.subjects: each for each in found(report, "impossible_pair")}
    assert set(pairs) == {("urgent", "auto_reply"), ("review", "auto_reply"), ("billing", "technical")}
    assert pairs["urgent", "auto_reply"].core == ("urgent-requires-review", "review-excludes-auto_reply")
    assert pairs["urgent", "auto_reply"].example == ("auto_reply", "urgent")
    assert {each.code for each in report.findings} == {
        "impossible_pair",
        "compulsory_label",
        "examples_missing",
        "label_like_topic",  # `review`, from which nothing follows there
    }


def test_errors_come_first_and_are_told_in_json() -> None:
    report = linted(rule('any_of = ["a"]', "x") + rule('forbid = ["a"]', "y") + rule('excludes = ["b", "c"]'))

    assert report.has_errors
    assert report.findings[0].code == "unsatisfiable"
    assert report.acceptable == 0
    as_json: Any = json.loads(json.dumps(report.to_json()))
    assert as_json["findings"][0]["core"] == ["x", "y"]
    assert as_json["findings"][0]["severity"] == "error"


# Size


def chain(names: list[str]) -> str:
    """Each requires the next: beyond none at all, an accepted ticket has some of the last ones."""
    return "".join(rule(f'implies = ["{a}", "{b}"]', f"{a}-{b}") for a, b in itertools.pairwise(names))


@pytest.mark.parametrize("size", [20, 21, 60])
def test_a_large_group_is_searched_and_counted_like_a_small_one(size: int) -> None:
    names = [f"q{index}" for index in range(size)]
    impossible = rule(f'forbid = ["{names[0]}", "{names[-1]}"]', "not-both-ends")

    report = lint(policy(small(chain(names) + impossible, nouls=names)))

    assert report.assignments == 2**size
    assert report.acceptable == size
    (never,) = found(report, "label_never_accepted")
    assert never.subjects == ("q0",)
    assert len(never.core) == size
    assert not found(report, "not_searched")


def test_without_the_solver_a_large_group_is_said_not_to_have_been_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pysat.solvers", None)
    names = [f"q{index}" for index in range(21)]

    report = lint(policy(small(chain(names), nouls=names)))

    (finding,) = found(report, "not_searched")
    assert finding.subjects == tuple(names)
    assert (
        "was not searched, for python-sat is not installed; pip install 'ticketgate[lint]'" in finding.message
    )
    assert report.acceptable == 22, "counting needs no solver"
    assert not found(report, "label_never_accepted")


def dense(labels: int, rules: int, seed: int) -> str:
    """A policy of one group in which every rule reaches anywhere: harder than what a person would write."""
    random = Random(seed)
    names = [f"q{index}" for index in range(labels)]
    texts = []
    for index in range(rules):
        a, b, c, d = (("!" if random.random() < 0.4 else "") + name for name in random.sample(names, 4))
        forms = (
            f'implies = ["{a}", "{b}"]',
            f'implies = [["{a}", "{b}"], "{c}"]',
            f'forbid = ["{a}", "{b}", "{c}"]',
            f'any_of = ["{a}", "{b}", "{c}"]',
            f'at_most = {{ count = 2, of = ["{a}", "{b}", "{c}", "{d}"] }}',
        )
        texts.append(rule(random.choice(forms), f"r{index}"))
    return small("".join(texts), nouls=names)


@pytest.mark.parametrize("seed", range(3))
def test_sixty_labels_and_a_hundred_rules_lint_in_seconds(seed: int) -> None:
    large = policy(dense(60, 100, seed))
    started = time.perf_counter()

    report = lint(large)

    # 1 to 2 s on one core of the machine it was written on; the rest is room for a busy one.
    assert time.perf_counter() - started < 20
    assert report.assignments == 2**60
    assert not found(report, "not_searched")
    assert found(report, "impossible_pair")


def test_questions_that_no_rule_connects_do_not_add_up() -> None:
    names = [f"q{index}" for index in range(80)]
    pairs = "".join(
        rule(f'excludes = ["{a}", "{b}"]', f"{a}-{b}") for a, b in zip(names[::2], names[1::2], strict=True)
    )

    report = lint(policy(small(pairs, nouls=names)))

    assert report.acceptable == 3**40
    assert report.assignments == 2**80
    assert isinstance(report.to_json()["assignments"], str)


# Brute force


def assignments(drawn: Drawn) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*drawn.domains.values()):
        yield dict(zip(drawn.domains, values, strict=True))


def kept(drawn: Drawn, rule_ids: set[str]) -> list[set[str]]:
    """The labels of every assignment that keeps these rules."""
    rules = [each for each in drawn.rules if each["id"] in rule_ids]
    return [
        labels_of(values) for values in assignments(drawn) if all(naive_rule(each, values) for each in rules)
    ]


@given(drawn_policies(max_questions=4))
def test_counts_and_labels_agree_with_brute_force(drawn: Drawn) -> None:
    every_rule = {each["id"] for each in drawn.rules}
    accepted, everything = kept(drawn, every_rule), kept(drawn, set())

    report = lint(parse_policy(drawn.text))

    assert (report.acceptable, report.assignments) == (len(accepted), len(everything))
    if not accepted:
        assert found(report, "unsatisfiable")
        return
    assert not found(report, "unsatisfiable")
    labels = set().union(*everything)
    forced = {each.subjects[0] for each in found(report, "label_always_forced")}
    assert forced == {label for label in labels if all(label in one for one in accepted)}
    never = {each.subjects[0] for each in found(report, "label_never_accepted")}
    told = {label.partition("=")[0] for label in forced}
    assert never == {
        label
        for label in labels
        if not any(label in one for one in accepted) and label.partition("=")[0] not in told
    }
    pairs = {frozenset(each.subjects) for each in found(report, "impossible_pair")}
    possible = {label for one in accepted for label in one}
    assert pairs == {
        frozenset(pair)
        for pair in itertools.combinations(possible, 2)
        if pair[0].partition("=")[0] != pair[1].partition("=")[0]
        and not any(set(pair) <= one for one in accepted)
    }


@given(drawn_policies(max_questions=4))
def test_rule_findings_agree_with_brute_force(drawn: Drawn) -> None:
    every_rule = {each["id"] for each in drawn.rules}
    everything = len(kept(drawn, set()))
    accepted = kept(drawn, every_rule)

    report = lint(parse_policy(drawn.text))

    vacuous = {each.subjects[0] for each in found(report, "vacuous_rule")}
    assert vacuous == {each for each in every_rule if len(kept(drawn, {each})) == everything}
    for finding in found(report, "duplicate_rule"):
        assert kept(drawn, {*finding.subjects}) == kept(drawn, {*finding.core})
    duplicates = {each.subjects[0] for each in found(report, "duplicate_rule")}
    telling = every_rule - vacuous - duplicates
    assert len({str(kept(drawn, {each})) for each in telling}) == len(telling)
    if accepted:
        redundant = {each.subjects[0] for each in found(report, "redundant_rule")}
        assert redundant == {each for each in telling if len(kept(drawn, telling - {each})) == len(accepted)}


def ruled_out(drawn: Drawn, finding: Finding, core: set[str]) -> bool:
    """Whether these rules alone bring about what the finding says."""
    left = kept(drawn, core)
    match finding.code:
        case "unsatisfiable":
            return not left
        case "label_never_accepted":
            return not any(finding.subjects[0] in one for one in left)
        case "label_always_forced":
            return all(finding.subjects[0] in one for one in left)
        case "impossible_pair":
            return not any(set(finding.subjects) <= one for one in left)
        case _:
            return left == kept(drawn, core | {*finding.subjects})


@given(drawn_policies())
def test_the_solver_finds_what_enumeration_finds(drawn: Drawn) -> None:
    under = parse_policy(drawn.text)

    seen, searched = lint(under), lint(under, max_assignments=BY_SOLVER)

    assert searched == seen


@given(drawn_policies(max_questions=6, max_rules=8))
def test_counting_one_by_one_agrees_with_seeing_all(drawn: Drawn) -> None:
    under = parse_policy(drawn.text)
    questions = [outcomes(name, under.question(name)) for name in under.ids]
    half = len(under.rules) // 2
    policies = [under.rules[:half], under.rules[half:]]

    counted = _one_by_one(questions, policies, 100_000)
    seen = _seen_whole(questions, policies)

    assert counted is not None
    assert {kind: found.count for kind, found in counted.items()} == {
        kind: found.count for kind, found in seen.items()
    }
    for kinds in (counted, seen):
        for accepting, found_ones in kinds.items():
            for labels in found_ones.examples:
                assert accepting == tuple(not violations(rules, labels) for rules in policies)


@given(drawn_policies(max_questions=4))
def test_a_core_suffices_and_none_of_it_can_be_left_out(drawn: Drawn) -> None:
    codes = (
        "unsatisfiable",
        "label_never_accepted",
        "label_always_forced",
        "impossible_pair",
        "redundant_rule",
    )

    report = lint(parse_policy(drawn.text))

    for finding in report.findings:
        if finding.code in codes:
            core = set(finding.core)
            assert core
            assert ruled_out(drawn, finding, core), finding
            assert not any(ruled_out(drawn, finding, core - {each}) for each in core), finding
