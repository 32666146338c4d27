"""A policy tried out: a table of cases against their expected verdicts, and its questions' examples against a model.

Promise: cases are judged by a worker's own gates. Coverage tells which rule no case broke and which no case kept, so
that a table which tests nothing is seen to do so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ticketgate.agents.cleaning import clean
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.deciding.selection import select
from ticketgate.agents.policy.atoms import label
from ticketgate.agents.policy.examples import Example
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.scoring.scorer import Scorer
from ticketgate.agents.workbench.policy.case_file import CheckedCase
from ticketgate.agents.workbench.policy.check import check
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.answers import Answer, answer_confidence
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.texts import spelled


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case and what came of it. `unmet`: what was expected and what came instead, a sentence each."""

    name: str
    decision: Decision
    unmet: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """For programs."""
        verdict = self.decision.verdict
        return {
            "name": self.name,
            "passed": not self.unmet,
            "status": str(verdict.status),
            "stage": str(verdict.stage),
            "reasons": list(verdict.reasons),
            "unmet": list(self.unmet),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Of each rule, by id in the policy's order, how many cases broke it and how many kept it."""

    broken: dict[str, int]
    held: dict[str, int]

    @property
    def never_fired(self) -> tuple[str, ...]:
        """The rules that no case broke."""
        return tuple(rule_id for rule_id, times in self.broken.items() if not times)

    @property
    def never_held(self) -> tuple[str, ...]:
        """The rules that no case kept."""
        return tuple(rule_id for rule_id, times in self.held.items() if not times)

    def to_json(self) -> dict[str, JsonValue]:
        """For programs."""
        return {
            "rules": {
                rule_id: {"fired": self.broken[rule_id], "held": self.held[rule_id]}
                for rule_id in self.broken
            },
            "never_fired": list(self.never_fired),
            "never_held": list(self.never_held),
        }


def run_cases(cases: Sequence[CheckedCase], policy: Policy) -> tuple[tuple[CaseResult, ...], Coverage]:
    """Every case judged, in order, and what the table covers."""
    results = tuple(_run(case, policy) for case in cases)
    truths = [result.decision.rule_truths for result in results]
    return results, Coverage(
        broken={rule.id: sum(each.get(rule.id) is False for each in truths) for rule in policy.rules},
        held={rule.id: sum(each.get(rule.id) is True for each in truths) for rule in policy.rules},
    )


def _run(case: CheckedCase, policy: Policy) -> CaseResult:
    decision = check(case.given, policy=policy)
    return CaseResult(name=case.name, decision=decision, unmet=tuple(_unmet(case, decision)))


def _unmet(case: CheckedCase, decision: Decision) -> Iterator[str]:
    expected, verdict = case.expected, decision.verdict
    came: dict[str, object] = {
        "expect": str(verdict.status),
        "stage": str(verdict.stage),
        "violations": [each.rule for each in decision.violations],
        "selected": list(decision.selected),
        "effects": [each.tool for each in decision.effects],
    }
    for key, found in came.items():
        wanted = getattr(expected, key)
        if wanted is None:
            continue
        # The order of labels is not the author's to know.
        if key == "selected":
            wanted = sorted(spelled(each, decision.selected) or each for each in wanted)
        elif isinstance(wanted, str):
            wanted = str(wanted)
        if wanted != found:
            why = f" ({'; '.join(verdict.reasons)})" if key == "expect" and verdict.reasons else ""
            yield f"{'verdict' if key == 'expect' else key}: expected {_said(wanted)}, got {_said(found)}{why}"


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleResult:
    """What the model said to one example.

    said: of a noul `true` or `false`, else the label; None if there is no usable answer. passed: None where nothing can
    be judged: an unclear state, under a policy that never abstains.
    """

    question_id: str
    example: Example
    said: str | None
    confidence: float | None
    passed: bool | None
    why: str

    def to_json(self) -> dict[str, JsonValue]:
        """For programs."""
        return {
            "question": self.question_id,
            "example": self.example.kind,
            "expects": self.example.expects,
            "said": self.said,
            "confidence": self.confidence,
            "passed": self.passed,
            "why": self.why,
        }


def run_examples(policy: Policy, scorer: Scorer) -> tuple[ExampleResult, ...]:
    """Every example of every question, put to the model. Raises what the scorer raises."""
    asked = [(name, each) for name in policy.questions for each in policy.examples.get(name, ())]
    results: list[ExampleResult] = []
    for question_id, example in asked:
        # One question at a time: an answer does not depend on the others, and a refusal is then this example's own.
        only = {question_id: policy.questions[question_id]}
        state = clean(example.state, policy.clean)
        ticket = Ticket(id=f"{question_id}.{example.kind}", state=state)
        (scores,) = scorer.score([ticket], only)
        answers = check_answers({**only, **scores.asked}, scores.answers)
        if isinstance(answers, tuple):
            results.append(
                ExampleResult(
                    question_id=question_id,
                    example=example,
                    said=None,
                    confidence=None,
                    passed=False,
                    why="; ".join(answers),
                )
            )
        else:
            results.append(_compared(policy, question_id, example, answers[question_id]))
    return tuple(results)


def _compared(policy: Policy, question_id: str, example: Example, answer: Answer) -> ExampleResult:
    bound = policy.abstain_below
    threshold = policy.thresholds.get(question_id)
    confidence = answer_confidence(answer) if threshold is None else answer_confidence(answer, threshold)
    (selected,) = select({question_id: answer}, policy.questions, policy.thresholds) or {None}
    if threshold is None:
        said, wanted = str(selected).removeprefix(label(question_id, "")), str(example.expects)
    else:
        said, wanted = ("false" if selected is None else "true"), str(example.expects).lower()
    is_unsure = bound is not None and confidence < bound
    passed: bool | None
    if example.kind == "unclear" and bound is None:
        passed, why = None, "not judged: without abstain_below the policy takes any answer"
    elif example.kind == "unclear":
        passed, why = is_unsure, f"the model {'is' if is_unsure else 'should be'} unsure, below {bound!r}"
    elif is_unsure:
        passed, why = False, f"the model is unsure, below {bound!r}"
    else:
        passed, why = said == wanted, "as written" if said == wanted else f"it should say {wanted}"
    return ExampleResult(
        question_id=question_id, example=example, said=said, confidence=confidence, passed=passed, why=why
    )
