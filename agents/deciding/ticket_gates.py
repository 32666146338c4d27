"""The gates that judge a ticket: state, answers, abstention, policy.

Promise: each sends what it refuses to review, with every reason it has; none changes an answer or a label.
`state` stands before the model, the others after it. Those before them (parse, schema, identity) need the
bytes and the claims and belong to the lane.
"""

from typing import Final

from ticketgate.agents.deciding.gate import Gate
from ticketgate.agents.deciding.ticket_case import TicketCase, Unusable
from ticketgate.agents.policy.effects import Unfilled
from ticketgate.codecs.records.ticket import is_empty_state
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.verdict import Stage, Status, Verdict

ACCEPTED_NEXT_STEP = (
    "the effects may be carried out: the policy's rules hold, which does not say that the labels are right"
)
STATE_NEXT_STEP = "a person reads the ticket; the model was not asked"
ANSWERS_NEXT_STEP = "a person decides; no label was selected"
ABSTENTION_NEXT_STEP = "a person decides; the model was unsure, and nothing was selected in its place"
POLICY_NEXT_STEP = "a person decides; the labels were not changed"
EFFECTS_NEXT_STEP = "a person completes the ticket or decides; no effect was proposed"


def _review(stage: Stage, reasons: tuple[str, ...], next_step: str) -> Verdict:
    return Verdict(Status.REVIEW, stage, reasons, next_step)


def check_state(case: TicketCase) -> Verdict | None:
    """A state that says nothing, or nothing any more once it is cleaned, is not worth a model's guess."""
    if is_empty_state(case.ticket.state):
        return _review(Stage.STATE, ("the state is empty: there is nothing to read",), STATE_NEXT_STEP)
    if case.read is not case.ticket and is_empty_state(case.read.state):
        cleaned = ", ".join(case.policy.clean)
        reason = f"nothing is left of the state once it is cleaned ({cleaned}): there is nothing to read"
        return _review(Stage.STATE, (reason,), STATE_NEXT_STEP)
    return None


def check_answers(case: TicketCase) -> Verdict | None:
    """Answers that are malformed, facts that are missing, and, unless the policy allows it, a truncated state.

    Truncation stands here and not at `state`: it is known only once the model has read, and what is wrong
    then is the answer, given on a part of the ticket.
    """
    if isinstance(case.answers, Unusable):
        return _review(Stage.ANSWERS, case.answers.reasons, ANSWERS_NEXT_STEP)
    return None


def check_abstention(case: TicketCase) -> Verdict | None:
    """Answers too unsure to stand, and with them every rule that is broken whatever they would be."""
    if not case.abstained:
        return None
    unsure = tuple(
        # repr: the shortest text that reads back as the same number, so none is shown across the bound.
        f"question {quote(question_id)}: answer confidence {case.confidences[question_id]!r}"
        f" is below {case.policy.abstain_below!r}"
        for question_id in case.policy.ids
        if question_id in case.abstained
    )
    broken = tuple(violation.message for violation in case.violations)
    return _review(Stage.ABSTENTION, unsure + broken, ABSTENTION_NEXT_STEP)


def check_policy(case: TicketCase) -> Verdict | None:
    """Every rule that the whole assignment breaks; then, if none, whatever keeps an effect from being filled in."""
    if case.violations:
        return _review(Stage.POLICY, tuple(each.message for each in case.violations), POLICY_NEXT_STEP)
    if isinstance(case.effects, Unfilled):
        return _review(Stage.POLICY, case.effects.reasons, EFFECTS_NEXT_STEP)
    return None


BEFORE_SCORING: Final = (Gate(Stage.STATE, check_state),)
AFTER_SCORING: Final = (
    Gate(Stage.ANSWERS, check_answers),
    Gate(Stage.ABSTENTION, check_abstention),
    Gate(Stage.POLICY, check_policy),
)
