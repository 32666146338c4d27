"""From a batch of tickets to one decision each.

Promise: a ticket's decision depends on that ticket, the policy and the scorer's answers about it, and on
nothing else: not on its batch, not on a clock. An empty state and a mapped question never reach the scorer.
Steps: 1 gate `state`, 2 score what passed, 3 gates `answers`, `abstention`, `policy`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from ticketgate.agents.deciding.gate import Observer, run_gates
from ticketgate.agents.deciding.ticket_case import TicketCase
from ticketgate.agents.deciding.ticket_gates import ACCEPTED_NEXT_STEP, AFTER_SCORING, BEFORE_SCORING
from ticketgate.agents.plural import counted
from ticketgate.agents.policy.atoms import Truth
from ticketgate.agents.policy.effects import ProposedEffect
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.scoring.scorer import Scorer, Scores
from ticketgate.codecs.records.decision import ModelRef, PolicyRef, Probability, Violation
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Status, Verdict

DEFAULT_REFUSAL_NEXT_STEP = "a person decides; no label was selected"
_ACCEPTED = Verdict(Status.ACCEPT, Stage.POLICY, (), ACCEPTED_NEXT_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about one ticket, and on what grounds: a decision record without its envelope.

    selected: sorted labels. values: those of them that have values of their own, in their types. probabilities: as
    scored. answers: raw, with facts and their origin. All empty, violations too, where a gate before `abstention`
    refused, save `answers`, which has whatever was scored.
    effects: empty unless accepted. truncated: sorted ids of questions answered on a part of the state.
    rule_truths: by rule id, held (True), broken (False) or open (None); for metrics.
    """

    verdict: Verdict
    policy: PolicyRef
    model: ModelRef
    selected: tuple[str, ...] = ()
    values: Mapping[str, JsonValue] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    probabilities: Mapping[str, Probability] = field(default_factory=dict)
    answers: JsonValue = field(default_factory=dict)
    effects: tuple[ProposedEffect, ...] = ()
    truncated: tuple[str, ...] = ()
    rule_truths: Mapping[str, Truth] = field(default_factory=dict)


class ScorerMisbehavedError(RuntimeError):
    """The scorer broke its port's promise of one result a ticket. Retried like any failure of a scorer."""

    def __init__(self, *, tickets: int, results: int) -> None:
        super().__init__(
            f"the scorer gave {counted(results, 'result')} for {counted(tickets, 'ticket')};"
            " it must give one for each, in order"
        )
        self.tickets, self.results = tickets, results


def decide(
    tickets: Sequence[Ticket], *, policy: Policy, scorer: Scorer, observe: Observer | None = None
) -> tuple[Decision, ...]:
    """One decision for each ticket, in order. What the scorer raises passes through: the caller retries."""
    # 1
    cases = [TicketCase(ticket, policy) for ticket in tickets]
    refusals = [run_gates(case, BEFORE_SCORING, observe) for case in cases]
    # 2
    passed = [case.read for case, refusal in zip(cases, refusals, strict=True) if refusal is None]
    scores = iter(_scored(passed, policy, scorer))
    # 3
    return tuple(
        decision_of(case, refusal, scorer.model)
        if refusal is not None
        else judge(TicketCase(case.ticket, policy, next(scores)), model=scorer.model, observe=observe)
        for case, refusal in zip(cases, refusals, strict=True)
    )


def judge(case: TicketCase, *, model: ModelRef, observe: Observer | None = None) -> Decision:
    """The decision on one scored case. `model` is who scored it, unless the scores name another."""
    if case.scores is not None and case.scores.model is not None:
        model = case.scores.model
    return decision_of(case, run_gates(case, AFTER_SCORING, observe), model)


def refuse(
    *,
    policy: PolicyRef,
    model: ModelRef,
    stage: Stage,
    reasons: Iterable[str],
    next_step: str = DEFAULT_REFUSAL_NEXT_STEP,
) -> Decision:
    """A review decision without inference, for a ticket that could not be judged or must not be."""
    verdict = Verdict(Status.REVIEW, stage, tuple(reasons), next_step)
    return Decision(verdict=verdict, policy=policy, model=model)


def _scored(tickets: Sequence[Ticket], policy: Policy, scorer: Scorer) -> Sequence[Scores]:
    if not tickets or not policy.questions:
        return [Scores({})] * len(tickets)
    scores = scorer.score(tickets, policy.questions)
    if len(scores) != len(tickets):
        raise ScorerMisbehavedError(tickets=len(tickets), results=len(scores))
    return scores


def decision_of(case: TicketCase, verdict: Verdict | None, model: ModelRef) -> Decision:
    """What to record of a case under the verdict of its gates, None if it passed them all."""
    effects = case.effects if verdict is None else ()
    return Decision(
        verdict=verdict or _ACCEPTED,
        policy=case.policy.ref,
        model=model,
        selected=tuple(sorted(case.selected)),
        values=case.values,
        violations=case.violations,
        probabilities=case.probabilities,
        answers=case.raw_answers,
        effects=effects if isinstance(effects, tuple) else (),
        truncated=tuple(sorted(case.scores.truncated)) if case.scores is not None else (),
        rule_truths=case.rule_truths,
    )
