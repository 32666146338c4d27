"""The verdict on answers that somebody gives: no model, no broker, no clock. What `ticketgate check` says.

Promise: the gates are those of a worker, in the same order, so a trial and a worker cannot disagree.
"""

from collections.abc import Mapping
from typing import Final

from ticketgate.agents.deciding.decide import Decision, decision_of, judge
from ticketgate.agents.deciding.gate import Observer, run_gates
from ticketgate.agents.deciding.ticket_case import TicketCase
from ticketgate.agents.deciding.ticket_gates import BEFORE_SCORING
from ticketgate.agents.policy.attributes import Missing
from ticketgate.agents.policy.facts import recorded_fact
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.scoring.asked import asked_as_recorded
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.values.malformed import wrong_kind
from ticketgate.codecs.values.strict import JsonValue

# Which model a decision names whose answers came from a file.
GIVEN: Final = ModelRef(id="given", hash="")


class CheckInputError(ValueError):
    """What was given holds no answers. The caller mends the input."""


def check(given: JsonValue, *, policy: Policy, observe: Observer | None = None) -> Decision:
    """Judge given answers under a policy, as a worker would.

    `given` is an object: the answers by question id; or, with more about the ticket, an object with `answers`
    and, if wanted, `state`, `attributes` (for mapped questions and effects) and `truncated` (question ids). A
    System One response and a decision record have that form; a record's own facts and ticket are used. Without
    a `state` the gate `state` is left out. Raises CheckInputError if it is neither.
    """
    if not isinstance(given, dict):
        raise CheckInputError(
            f"answers must be an object from question id to answer, not {wrong_kind(given)}"
        )
    if not isinstance(given.get("answers", {}), dict) and "answers" not in policy.ids:
        raise CheckInputError(
            f"answers must be an object from question id to answer, not {wrong_kind(given['answers'])}"
        )
    answers, about = _unwrapped(given)
    facts = {
        question_id: value
        for question_id, mapped in policy.mapped.items()
        if not isinstance(value := recorded_fact(mapped, answers.get(question_id)), Missing)
    }
    attributes = _object(about, "attributes")
    for question_id, value in facts.items():
        attributes = _merged(attributes, policy.mapped[question_id].path.placed(value))
    ticket = Ticket(
        id=_text(about, "id") or _text(about, "ticket_id"),
        state=about.get("state"),
        tenant=_text(about, "tenant"),
        attributes=attributes,
    )
    refusal = run_gates(TicketCase(ticket, policy), BEFORE_SCORING, observe) if "state" in about else None
    if refusal is not None:
        return decision_of(TicketCase(ticket, policy), refusal, GIVEN)
    truncated = about.get("truncated")
    scores = Scores(
        answers={name: answer for name, answer in answers.items() if name not in facts},
        truncated=frozenset(str(each) for each in truncated) if isinstance(truncated, list) else frozenset(),
        asked=asked_as_recorded(policy.questions, answers),
    )
    return judge(TicketCase(ticket, policy, scores), model=GIVEN, observe=observe)


def _unwrapped(given: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """The answers, and what else is said about the ticket."""
    answers = given.get("answers")
    # A question may be called "answers": an answer has a type, a table of answers has none that is text.
    if not isinstance(answers, dict) or isinstance(answers.get("type"), str):
        return given, {}
    return answers, _object(given, "ticket") | {
        name: each for name, each in given.items() if name != "answers"
    }


def _object(about: Mapping[str, JsonValue], name: str) -> dict[str, JsonValue]:
    found = about.get(name)
    return found if isinstance(found, dict) else {}


def _text(about: Mapping[str, JsonValue], name: str) -> str:
    found = about.get(name)
    return found if isinstance(found, str) else ""


def _merged(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Both, objects within merged too; `other` has its way where they differ."""
    merged = dict(one)
    for name, value in other.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = _merged(before, value)
        else:
            merged[name] = value
    return merged
