"""A person's labels judged by the policy's own gates, and what would follow from them.

Promise: what is accepted here passed the same code as a model's assignment does; the person's labels take the place of
the answers, facts stay facts, and nothing is searched or repaired. Whether the labels are right, nobody here can say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from ticketgate.agents.deciding.decide import Decision, judge
from ticketgate.agents.deciding.ticket_case import TicketCase
from ticketgate.agents.policy.atoms import label
from ticketgate.agents.policy.facts import Fact
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.agents.settling.refusal import Code, Refusal
from ticketgate.codecs.records.decision import DecisionRecord, Effect
from ticketgate.codecs.records.identity import IdempotencyKey, effect_key
from ticketgate.codecs.records.settlement import Settlement, effects_digest
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.verdict import Status

# Of labels that are no assignment, so many are named.
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A record in review, and the ticket that it is about; None where neither it nor its topic has the text."""

    record: DecisionRecord
    ticket: Ticket | None


def judge_labels(
    ticket: Ticket, labels: frozenset[str], *, policy: Policy, record: DecisionRecord
) -> Decision | Refusal:
    """What the policy says of these labels: the decision as a model's would be, with whatever verdict; or that they are
    no assignment of its questions. `record`: whose model answered."""
    case = TicketCase(ticket, policy)
    wrong = _wrong_labels(labels, policy, case)
    if wrong:
        return Refusal(Code.WRONG_LABELS, wrong)
    scores = Scores(
        {name: _answer(name, question, labels) for name, question in _asked(policy, labels).items()},
        asked=_narrowed(policy, labels),
    )
    return judge(TicketCase(ticket, policy, scores), model=record.model)


def effects_of(decision: Decision, key: IdempotencyKey) -> tuple[Effect, ...]:
    """The effects under the ticket's own key, so that whoever dispatched it before, or decides it anew, names the same
    ones."""
    return tuple(Effect(each.tool, each.arguments, effect_key(key, each.place)) for each in decision.effects)


def judge_settlement(settlement: Settlement, reviewed: Reviewed, *, policy: Policy) -> Decision | Refusal:
    """The decision that an accepting settlement leads to under the policy in force, if it is the one that was shown."""
    if reviewed.ticket is None:
        return Refusal(
            Code.NO_TEXT, ("the ticket's text is neither in the record nor in its topic any more",)
        )
    found = judge_labels(reviewed.ticket, frozenset(settlement.labels), policy=policy, record=reviewed.record)
    if isinstance(found, Refusal):
        return found
    changed = () if policy.hash == settlement.policy else ("the policy has changed since it was shown",)
    if found.verdict.status is not Status.ACCEPT:
        return Refusal(Code.JUDGED_OTHERWISE, (*found.verdict.reasons, *changed))
    if effects_digest(effects_of(found, settlement.key)) != settlement.effects:
        return Refusal(Code.EFFECTS_DIFFER, ("the effects are not those that were shown", *changed))
    return found


def _wrong_labels(labels: frozenset[str], policy: Policy, case: TicketCase) -> tuple[str, ...]:
    """Why labels are no assignment; of a question without a fact the gates say it."""
    reasons: list[str] = []
    known: set[str] = set()
    for name, question in policy.questions.items():
        of_it = labels_of(name, question)
        known |= of_it
        count = len(of_it & labels)
        if not isinstance(question, NoulQuestion) and count != 1:
            what = "no label" if not count else f"{count} labels"
            reasons.append(f"question {quote(name)} has {what}, and needs one")
    for name, fact in case.facts.items():
        of_it = labels_of(name, policy.mapped[name].question)
        known |= of_it
        selected = {fact.selected} - {None} if isinstance(fact, Fact) else of_it & labels
        if of_it & labels != selected:
            reasons.append(f"question {quote(name)} is answered by a fact, which nobody changes")
    unknown = sorted(labels - known)
    reasons += [f"the policy has no label {quote(name)}" for name in unknown[:MOST_NAMED]]
    return tuple(reasons)


def labels_of(name: str, question: Question) -> frozenset[str]:
    """Every label that a question can select."""
    match question:
        case NoulQuestion():
            return frozenset({name})
        case ChoiceQuestion() | ScoreQuestion():
            return frozenset(label(name, each) for each in question.names)
        case _:
            assert_never(question)


def _asked(policy: Policy, labels: frozenset[str]) -> Mapping[str, Question]:
    return {**policy.questions, **_narrowed(policy, labels)}


def _narrowed(policy: Policy, labels: frozenset[str]) -> dict[str, Question]:
    """A choice by shortlist as if the label's own and one more option had been asked about."""
    found: dict[str, Question] = {}
    for name, question in policy.questions.items():
        if isinstance(question, ChoiceQuestion) and question.shortlist is not None:
            chosen = next(each for each in question.labels if label(name, each) in labels)
            other = next(each for each in question.labels if each != chosen)
            criteria = {each: question.criteria[each] for each in question.labels if each in (chosen, other)}
            values = question.values and tuple(
                value
                for each, value in zip(question.labels, question.values, strict=True)
                if each in criteria
            )
            found[name] = ChoiceQuestion(question.instructions, criteria, values=values)
    return found


def _answer(name: str, question: Question, labels: frozenset[str]) -> dict[str, object]:
    """The answer of one who is sure."""
    match question:
        case NoulQuestion():
            return {"type": "noul", "noul": 1.0 if name in labels else 0.0}
        case ChoiceQuestion():
            sure = {each: 1.0 if label(name, each) in labels else 0.0 for each in question.labels}
            chosen = max(sure, key=lambda each: sure[each])
            return {"type": "choice", "choice": chosen, "confidence": 1.0, "probabilities": sure}
        case ScoreQuestion():
            sure = {
                each: 1.0 if label(name, value) in labels else 0.0
                for each, value in zip(question.labels, question.names, strict=True)
            }
            level = int(max(sure, key=lambda each: sure[each]))
            return {"type": "score", "score": level, "confidence": 1.0, "probabilities": sure}
        case _:
            assert_never(question)
