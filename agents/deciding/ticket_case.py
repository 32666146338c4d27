"""One ticket on its way through the gates: what is given, and what follows from it.

Promise: everything here follows from ticket, policy and scores alone, each thing once, when a gate first asks
for it. Gates read it to judge, and the decision records what they read.
"""

from collections.abc import Mapping
from dataclasses import replace

from ticketgate.agents.cleaning import clean
from ticketgate.agents.deciding.once import once
from ticketgate.agents.deciding.selection import own_values, probabilities, select
from ticketgate.agents.policy.atoms import Truth
from ticketgate.agents.policy.effects import ProposedEffect, Unfilled, fill_in
from ticketgate.agents.policy.facts import Fact, NoFact, fact_record, read_fact
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.records.decision import Probability, Violation
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.answers import Answer, answer_confidence, tag_non_finite
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.strict import JsonValue


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why the answers cannot be judged by: every reason, those of questions in the policy's order."""

    reasons: tuple[str, ...]


@dataclass(frozen=True)  # no slots: `once` keeps its results in __dict__
class TicketCase:
    """A ticket under a policy, with its scores once there are any.

    `scores` None: no model was asked. Only the gate `state` may run then.
    """

    ticket: Ticket
    policy: Policy
    scores: Scores | None = None

    @once
    def read(self) -> Ticket:
        """The ticket as the model reads it: without what the policy has taken off it."""
        if not self.policy.clean:
            return self.ticket
        return replace(self.ticket, state=clean(self.ticket.state, self.policy.clean))

    @once
    def facts(self) -> Mapping[str, Fact | NoFact]:
        """What the ticket's attributes answer, by question."""
        return {
            question_id: read_fact(question_id, mapped, self.ticket.attributes)
            for question_id, mapped in self.policy.mapped.items()
        }

    @once
    def answers(self) -> Mapping[str, Answer] | Unusable:
        """The scorer's answers, checked whole, or why they and the facts cannot be judged by."""
        scores = self.scores if self.scores is not None else Scores({})
        if scores.failure is not None:
            return Unusable((f"no answers: {scores.failure.reason}",))
        if scores.abstention is not None:
            return Unusable((f"the model abstains: {scores.abstention}",))
        questions = self.policy.questions if not scores.asked else {**self.policy.questions, **scores.asked}
        checked = check_answers(questions, scores.answers)
        reasons = [*checked] if isinstance(checked, tuple) else []
        reasons += [fact.reason for fact in self.facts.values() if isinstance(fact, NoFact)]
        if scores.truncated and self.policy.on_truncation == "review":
            reasons += [
                f"question {quote(question_id)}: the model did not read all of the state or question"
                for question_id in self.policy.questions
                if question_id in scores.truncated
            ]
        return checked if not reasons and not isinstance(checked, tuple) else Unusable(tuple(reasons))

    @property
    def usable(self) -> Mapping[str, Answer]:
        """The answers, or none at all if they cannot be judged by."""
        return {} if isinstance(self.answers, Unusable) else self.answers

    @once
    def confidences(self) -> Mapping[str, float]:
        """Of each answer the probability of what it selects."""
        thresholds = self.policy.thresholds
        return {
            question_id: answer_confidence(answer, thresholds[question_id])
            if question_id in thresholds
            else answer_confidence(answer)
            for question_id, answer in self.usable.items()
        }

    @once
    def abstained(self) -> frozenset[str]:
        """The questions whose answer is too unsure to stand: its own probability is strictly below the bound."""
        bound = self.policy.abstain_below
        if bound is None:
            return frozenset()
        return frozenset(question_id for question_id, value in self.confidences.items() if value < bound)

    @once
    def selected(self) -> frozenset[str]:
        """The assignment: labels that answers and facts select; an abstained answer selects nothing."""
        if isinstance(self.answers, Unusable):
            return frozenset()
        sure = self.answers
        if self.abstained:
            sure = {name: answer for name, answer in sure.items() if name not in self.abstained}
        found = select(sure, self.policy.questions, self.policy.thresholds)
        if not self.facts:
            return found
        facts = [fact.selected for fact in self.facts.values() if isinstance(fact, Fact)]
        return found.union(each for each in facts if each is not None)

    @once
    def values(self) -> Mapping[str, JsonValue]:
        """The assignment as values, of the questions that have some of their own and were not abstained from."""
        if not self.policy.valued or isinstance(self.answers, Unusable):
            return {}
        sure = {name: each for name, each in self.policy.valued.items() if name not in self.abstained}
        return own_values(sure, self.selected)

    @once
    def rule_truths(self) -> Mapping[str, Truth]:
        """What each rule, by id, says of the assignment; empty if there is none."""
        if isinstance(self.answers, Unusable):
            return {}
        if not self.abstained:
            return self.policy.quick.truths(self.selected)
        return {rule.id: rule.truth(self.selected, self.abstained) for rule in self.policy.rules}

    @once
    def violations(self) -> tuple[Violation, ...]:
        """Every rule that is broken whatever the abstained answers would be, in the policy's order."""
        if False not in self.rule_truths.values():
            return ()
        return tuple(
            Violation(rule=rule.id, message=rule.message)
            # Without an assignment there are no truths, and else one a rule, in the rules' order.
            for rule, held in zip(self.policy.rules, self.rule_truths.values(), strict=False)
            if held is False
        )

    @once
    def effects(self) -> tuple[ProposedEffect, ...] | Unfilled:
        """What the policy asks for under this assignment. Meant for an assignment that breaks no rule."""
        return fill_in(self.policy.effects, self.ticket, self.selected)

    @once
    def probabilities(self) -> Mapping[str, Probability]:
        """As scored; facts have none."""
        return probabilities(self.usable, self.policy.questions)

    @once
    def raw_answers(self) -> JsonValue:
        """The scorer's answers as they came, non-finite numbers tagged, then the facts with their origin.

        None of those that the model does not stand by: whoever judges the record anew must come to no other end.
        """
        if self.scores is None:
            return {}
        tagged = tag_non_finite({} if self.scores.abstention is not None else self.scores.answers)
        if isinstance(tagged, dict):
            for question_id, fact in self.facts.items():
                # An answer that nobody asked for keeps its place: it is the evidence for the refusal.
                if isinstance(fact, Fact) and question_id not in tagged:
                    tagged[question_id] = fact_record(self.policy.mapped[question_id], fact)
        return tagged
