"""The requirement of seed 000: an assignment goes on only if every declared rule holds, and is never touched.

These tests run under `python -O` as well (test_optimised.py).
"""

from __future__ import annotations

import itertools
import math

import pytest
from ticketgate.codecs.verdict import Stage, Status

from ...support.deciding import LABELS, decide_one, noul, policy, support_answers

URGENT = "urgent requires review"
REPLY = "review excludes auto_reply"
ROUTE = "exactly one of billing, technical"

FIXTURES = {
    "all rules hold": ((0.9, 0.9, 0.1, 0.8, 0.2), ()),
    "urgent without review": ((0.9, 0.2, 0.1, 0.8, 0.2), (URGENT,)),
    "review with a reply": ((0.1, 0.9, 0.8, 0.8, 0.2), (REPLY,)),
    "no route": ((0.1, 0.1, 0.8, 0.2, 0.2), (ROUTE,)),
    "two routes": ((0.1, 0.1, 0.8, 0.8, 0.7), (ROUTE,)),
    "on and just below the threshold": ((0.5, 0.5, 0.4999, 0.5, 0.4999), ()),
    "two rules at once": ((0.9, 0.1, 0.9, 0.9, 0.9), (URGENT, ROUTE)),
}


@pytest.mark.parametrize(("values", "expected"), FIXTURES.values(), ids=FIXTURES.keys())
def test_a_fixture_gets_its_verdict_and_keeps_its_probabilities(
    values: tuple[float, ...], expected: tuple[str, ...]
) -> None:
    answers = support_answers(*values)

    decision = decide_one(answers, policy())

    assert tuple(each.message for each in decision.violations) == expected
    assert decision.verdict.reasons == expected
    assert decision.verdict.status is (Status.REVIEW if expected else Status.ACCEPT)
    assert decision.verdict.stage is Stage.POLICY
    assert decision.probabilities == dict(zip(LABELS, values, strict=True))
    assert decision.answers == answers
    assert decision.selected == tuple(
        sorted(n for n, value in zip(LABELS, values, strict=True) if value >= 0.5)
    )
    assert bool(decision.effects) is not bool(expected)


@pytest.mark.parametrize(("values", "expected"), FIXTURES.values(), ids=FIXTURES.keys())
def test_the_order_of_answers_does_not_matter(values: tuple[float, ...], expected: tuple[str, ...]) -> None:
    answers = support_answers(*values)

    reversed_decision = decide_one(dict(reversed(list(answers.items()))), policy())

    assert reversed_decision == decide_one(answers, policy())
    assert list(reversed_decision.probabilities) == list(LABELS)
    assert tuple(each.message for each in reversed_decision.violations) == expected


@pytest.mark.parametrize("chosen", list(itertools.product((False, True), repeat=5)))
def test_each_of_the_32_assignments_gets_exactly_its_violations(chosen: tuple[bool, ...]) -> None:
    urgent, review, auto_reply, billing, technical = chosen
    expected = []
    if urgent and not review:
        expected.append(URGENT)
    if review and auto_reply:
        expected.append(REPLY)
    if billing is technical:
        expected.append(ROUTE)

    decision = decide_one(support_answers(*(1.0 if each else 0.0 for each in chosen)), policy())

    assert [each.message for each in decision.violations] == expected
    assert (decision.verdict.status is Status.ACCEPT) is not bool(expected)
    assert set(decision.selected) == {name for name, each in zip(LABELS, chosen, strict=True) if each}


def test_eight_of_the_32_assignments_are_accepted() -> None:
    every = itertools.product((0.0, 1.0), repeat=5)

    accepted = [
        values
        for values in every
        if decide_one(support_answers(*values), policy()).verdict.status == "accept"
    ]

    assert len(accepted) == 8


def test_the_rules_of_the_seed_can_never_all_break_at_once() -> None:
    every = itertools.product((0.0, 1.0), repeat=5)

    assert max(len(decide_one(support_answers(*values), policy()).violations) for values in every) == 2


GOOD = support_answers(0.9, 0.9, 0.1, 0.8, 0.2)
MALFORMED = {
    "no answers": {},
    "one missing": {name: GOOD[name] for name in LABELS[:-1]},
    "one nobody asked for": {**GOOD, "refund": noul(0.1)},
    "null": {**GOOD, "urgent": None},
    "a bare number": {**GOOD, "urgent": 0.9},
    "an array": {**GOOD, "urgent": [0.9]},
    "no type": {**GOOD, "urgent": {"noul": 0.9}},
    "another type": {**GOOD, "urgent": {"type": "choice", "choice": "a", "probabilities": {"a": 1}}},
    "no number": {**GOOD, "urgent": {"type": "noul"}},
    "true": {**GOOD, "urgent": noul(True)},
    "false": {**GOOD, "urgent": noul(False)},
    "text": {**GOOD, "urgent": noul("0.9")},
    "null as number": {**GOOD, "urgent": noul(None)},
    "NaN": {**GOOD, "urgent": noul(math.nan)},
    "infinity": {**GOOD, "urgent": noul(math.inf)},
    "minus infinity": {**GOOD, "urgent": noul(-math.inf)},
    "below zero": {**GOOD, "urgent": noul(-1e-9)},
    "above one": {**GOOD, "urgent": noul(math.nextafter(1, 2))},
    "far above one": {**GOOD, "urgent": noul(10**400)},
    "complex": {**GOOD, "urgent": noul(0.5 + 0j)},
}


@pytest.mark.parametrize("answers", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_answers_select_nothing_and_go_to_review(answers: dict[str, object]) -> None:
    decision = decide_one(answers, policy())

    assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.ANSWERS)
    assert decision.verdict.reasons
    assert decision.selected == ()
    assert decision.violations == ()
    assert decision.probabilities == {}
    assert decision.effects == ()
    assert isinstance(decision.answers, dict)
    assert set(decision.answers) == set(answers)


def test_integers_and_both_ends_are_probabilities() -> None:
    decision = decide_one(support_answers(1, 1, 0, 1, -0.0), policy())

    assert decision.verdict.status is Status.ACCEPT
    assert decision.selected == ("billing", "review", "urgent")


def test_every_malformed_answer_is_named() -> None:
    decision = decide_one({**GOOD, "urgent": noul(2), "technical": noul("no")}, policy())

    assert len(decision.verdict.reasons) == 2
    assert '"urgent"' in decision.verdict.reasons[0]
    assert '"technical"' in decision.verdict.reasons[1]


def test_a_non_finite_answer_is_recorded_as_text_and_never_as_null() -> None:
    answers = {**GOOD, "urgent": noul(math.nan), "review": noul(-math.inf)}

    decision = decide_one(answers, policy())

    assert isinstance(decision.answers, dict)
    assert decision.answers["urgent"] == {"type": "noul", "noul": "NaN"}
    assert decision.answers["review"] == {"type": "noul", "noul": "-Infinity"}
    assert decision.answers["billing"] == GOOD["billing"]


def test_what_almost_reaches_the_threshold_is_not_rounded_up_to_it() -> None:
    just_below = math.nextafter(0.5, 0)

    decision = decide_one(support_answers(just_below, 0.9, 0.1, 0.8, 0.2), policy())

    assert "urgent" not in decision.selected
    assert decision.probabilities["urgent"] == just_below


def test_accepting_says_that_the_rules_hold_and_not_that_the_labels_are_right() -> None:
    decision = decide_one(GOOD, policy())

    assert "rules hold" in decision.verdict.next_step
    assert "does not say that the labels are right" in decision.verdict.next_step


def test_a_review_says_that_the_labels_were_left_alone() -> None:
    decision = decide_one(support_answers(0.9, 0.2, 0.1, 0.8, 0.2), policy())

    assert "labels were not changed" in decision.verdict.next_step


def test_marginals_do_not_determine_how_probable_both_are() -> None:
    """Why there is no joint confidence: two distributions, the same marginals, different joints."""
    independent = {(a, b): 0.25 for a in (0, 1) for b in (0, 1)}
    bound_together = {(0, 0): 0.5, (0, 1): 0.0, (1, 0): 0.0, (1, 1): 0.5}

    for joint in (independent, bound_together):
        assert sum(p for (a, _), p in joint.items() if a) == 0.5
        assert sum(p for (_, b), p in joint.items() if b) == 0.5

    assert independent[1, 1] == 0.25
    assert bound_together[1, 1] == 0.5
    # The gate sees the marginals alone, so it says the same of both, and no number of its own.
    decision = decide_one(support_answers(0.5, 0.5, 0, 1, 0), policy())
    assert decision.probabilities == {
        "urgent": 0.5,
        "review": 0.5,
        "auto_reply": 0,
        "billing": 1,
        "technical": 0,
    }
