"""Tables of cases, what they cover, and the questions' examples on a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from ticketgate.agents.policy import Policy, PolicyError, parse_policy
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.agents.workbench.policy.case_file import CaseError, read_cases
from ticketgate.agents.workbench.policy.trial import CaseResult, Coverage, run_cases, run_examples
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question

from ....support.deciding import MODEL, choice, noul, policy, score, small
from .test_lint import ANGER, KIND, rule

GOOD = "answers = { urgent = 0.9, review = 0.9, auto_reply = 0.1, billing = true, technical = false }"
BAD = "answers = { urgent = 0.9, review = 0.2, auto_reply = 0.1, billing = 1, technical = 0 }"


def ran(text: str, under: Policy | None = None) -> tuple[Sequence[CaseResult], Coverage]:
    chosen = under or policy()
    return run_cases(read_cases(text, source="cases.toml", policy=chosen), chosen)


def test_cases_that_come_out_as_expected_leave_nothing_unmet() -> None:
    results, _ = ran(
        f'[[cases]]\nname = "fine"\n{GOOD}\nexpect = "accept"\nselected = ["urgent", "review", "billing"]\n'
        f'effects = ["assign_queue"]\n'
        f'[[cases]]\n{BAD}\nexpect = "review"\nstage = "policy"\nviolations = ["urgent-requires-review"]\n'
    )

    assert [(each.name, each.unmet) for each in results] == [("fine", ()), ("case 2", ())]


def test_what_was_expected_and_what_came_is_said() -> None:
    results, _ = ran(
        f'[[cases]]\n{BAD}\nexpect = "accept"\nstage = "abstention"\nselected = []\n'
        'violations = ["review-excludes-auto_reply"]\neffects = ["send_reply"]\n'
    )

    assert results[0].unmet == (
        "verdict: expected accept, got review (urgent requires review)",
        "stage: expected abstention, got policy",
        "violations: expected review-excludes-auto_reply, got urgent-requires-review",
        "selected: expected none, got billing, urgent",
        "effects: expected send_reply, got none",
    )


def test_json_lines_say_the_same_as_toml() -> None:
    line = json.dumps(
        {
            "answers": {"urgent": 0.9, "review": 0.2, "auto_reply": 0, "billing": 1, "technical": 0},
            "expect": "review",
        }
    )

    results, _ = ran(line + "\n\n" + line)

    assert [each.unmet for each in results] == [(), ()]


def test_coverage_tells_which_rules_never_fired_and_which_never_held() -> None:
    _, coverage = ran(f'[[cases]]\n{BAD}\nexpect = "review"')

    assert coverage.never_fired == ("review-excludes-auto_reply", "exactly-one-of-billing-technical")
    assert coverage.never_held == ("urgent-requires-review",)
    assert coverage.to_json()["rules"] == {
        "urgent-requires-review": {"fired": 1, "held": 0},
        "review-excludes-auto_reply": {"fired": 0, "held": 1},
        "exactly-one-of-billing-technical": {"fired": 0, "held": 1},
    }


def test_choices_scores_and_facts_may_be_written_short() -> None:
    vip = '[questions.vip]\ntype = "noul"\nfrom = "attributes.customer.vip"\n'
    under = parse_policy(small(KIND + ANGER + vip, nouls=()))

    results, _ = ran(
        '[[cases]]\nanswers = { kind = "wish", anger = 2, vip = true }\nattributes = { customer = { name = "x" } }\n'
        'expect = "accept"\nselected = ["kind=wish", "anger=2", "vip"]\n'
        "[[cases]]\nanswers = { kind = { bug = 0.6, other = 0.4 }, anger = [0.1, 0.8, 0.1], vip = false }\n"
        'expect = "accept"\nselected = ["kind=bug", "anger=1"]\n',
        under,
    )

    assert [each.unmet for each in results] == [(), ()]


def test_malformed_answers_can_be_expected_to_go_to_review() -> None:
    results, _ = ran(
        '[[cases]]\nanswers = { urgent = 1.5 }\nexpect = "review"\nstage = "answers"\n'
        f'[[cases]]\n{GOOD}\nstate = ""\nexpect = "review"\nstage = "state"\n'
        f'[[cases]]\n{GOOD}\ntruncated = ["urgent"]\nexpect = "review"\nstage = "answers"\n'
    )

    assert [each.unmet for each in results] == [(), (), ()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no cases"),
        ("cases = 3", 'unknown field "cases"'),
        ('name = "x"', 'unknown field "name"'),
        ("[[cases]", "not TOML"),
        ('{"answers": {}', "cases.toml:1: "),
        ("[[cases]]", "case 1: expect: field required"),
        ('[[cases]]\nexpect = "maybe"', "case 1: expect: "),
        ('[[cases]]\nexpect = "accept"\nanswer = {}', "the fields are name, answers"),
        ('[[cases]]\nexpect = "accept"\nviolations = ["x"]', 'no rule "x"'),
        ('[[cases]]\nexpect = "accept"\nanswers = { z = 1 }', 'no question "z"'),
        ('[[cases]]\nexpect = "accept"\nanswers = { urgent = "yes" }', "answers.urgent: write true, false"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_its_place(text: str, said: str) -> None:
    with pytest.raises(CaseError) as caught:
        ran(text)

    assert said in str(caught.value)


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(CaseError, match=r'answers.kind: no label "crash"; its labels are bug, wish, other'):
        ran('[[cases]]\nexpect = "accept"\nanswers = { kind = "crash" }', parse_policy(small(KIND)))


# Examples

EXAMPLES = (
    rule('excludes = ["a", "b"]')
    + KIND
    + ANGER
    + '[questions.a.examples]\nfits = "yes"\nother = ["no"]\nunclear = { state = { text = "hm" } }\n'
    '[questions.kind.examples]\nfits = { state = "crash", label = "bug" }\n'
    'other = { state = "please add", label = "wish" }\nunclear = "hello"\n'
    '[questions.anger.examples]\nfits = { state = "fine", label = 0 }\nother = { state = "GRR", label = 2 }\n'
)


class BySaying:
    """A scorer that answers by the example's id."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = answers

    @property
    def model(self) -> ModelRef:
        return MODEL

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        (question_id,) = questions
        return [
            Scores({question_id: self._answers[each.id]} if each.id in self._answers else {})
            for each in tickets
        ]


SAID: dict[str, Any] = {
    "a.fits": noul(0.9),
    "a.other": noul(0.1),
    "a.unclear": noul(0.55),
    "kind.fits": choice("bug", bug=0.9, wish=0.1, other=0),
    "kind.other": choice("wish", bug=0.1, wish=0.9, other=0),
    "kind.unclear": choice("bug", bug=0.4, wish=0.3, other=0.3),
    "anger.fits": score(0.9, 0.1, 0),
    "anger.other": score(0, 0.2, 0.8),
}


def shown(changed: Mapping[str, object] | None = None, *, top: str = "abstain_below = 0.7") -> dict[str, Any]:
    under = parse_policy(small(EXAMPLES, top=top))
    results = run_examples(under, BySaying(SAID | dict(changed or {})))
    return {f"{each.question_id}.{each.example.kind}": each for each in results}


def test_examples_are_read_in_every_form() -> None:
    examples = parse_policy(small(EXAMPLES)).examples

    assert [(each.kind, each.state, each.expects) for each in examples["a"]] == [
        ("fits", "yes", True),
        ("other", ["no"], False),
        ("unclear", {"text": "hm"}, None),
    ]
    assert [each.expects for each in examples["kind"]] == ["bug", "wish", None]
    assert [each.expects for each in examples["anger"]] == [0, 2]


def test_a_model_that_means_the_same_passes_all() -> None:
    results = shown()

    assert set(results) == set(SAID)
    assert all(each.passed for each in results.values()), results
    assert results["anger.other"].said == "2"


@pytest.mark.parametrize(
    ("example", "answer", "why"),
    [
        ("a.fits", noul(0.2), "it should say true"),
        ("a.other", noul(0.9), "it should say false"),
        ("a.fits", noul(0.6), "the model is unsure, below 0.7"),
        ("a.unclear", noul(0.95), "the model should be unsure, below 0.7"),
        ("kind.other", choice("bug", bug=0.9, wish=0.1, other=0), "it should say wish"),
        ("anger.other", score(0.9, 0.1, 0), "it should say 2"),
        ("a.fits", noul(7), 'question "a"'),
    ],
)
def test_a_model_that_means_something_else_fails(example: str, answer: object, why: str) -> None:
    result = shown({example: answer})[example]

    assert result.passed is False
    assert why in result.why


def test_without_abstention_an_unclear_state_is_not_judged() -> None:
    result = shown(top="")["a.unclear"]

    assert result.passed is None
    assert "abstain_below" in result.why
    assert result.confidence == 0.55


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ('[questions.a.examples]\nfits = ""', "has no state to read"),
        ("[questions.a.examples]\nfits = 3", "has no state to read"),
        ('[questions.a.examples]\nfits = { text = "x" }', "a table without state"),
        ('[questions.a.examples]\nfits = { state = "x", label = "a" }', "has no label"),
        ('[questions.a.examples]\nfit = "x"', 'unknown field "fit" in questions.a.examples'),
        (KIND + '[questions.kind.examples]\nfits = "x"', "names no label of the question"),
        (KIND + '[questions.kind.examples]\nfits = { state = "x", label = "crash" }', "names no label"),
        (
            KIND
            + '[questions.kind.examples]\nfits = { state = "x", label = "bug" }\n'
            + 'other = { state = "y", label = "bug" }',
            "both mean bug",
        ),
        (ANGER + '[questions.anger.examples]\nfits = { state = "x", label = "low" }', "names no label"),
        (
            '[questions.v]\ntype = "noul"\nfrom = "attributes.v"\n[questions.v.examples]\nfits = "x"',
            "a mapped question and has no examples",
        ),
    ],
)
def test_an_example_that_says_nothing_is_refused_by_line(examples: str, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(small(examples))

    assert said in str(caught.value)
    assert caught.value.line
