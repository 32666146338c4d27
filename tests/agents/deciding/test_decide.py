"""From a batch of tickets to decisions: what reaches the scorer, and what each gate records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from ticketgate.agents.deciding.decide import ScorerMisbehavedError, decide, refuse
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Status, Verdict

from ...support.deciding import (
    LABELS,
    MODEL,
    ByHand,
    choice,
    decide_one,
    noul,
    policy,
    score,
    small,
    support_answers,
    ticket,
)

ACCEPTED = support_answers(0.9, 0.9, 0.1, 0.8, 0.2)


def test_one_decision_for_each_ticket_in_order() -> None:
    by_id = {"good": ACCEPTED, "bad": support_answers(0.9, 0.2, 0.1, 0.8, 0.2)}
    tickets = [ticket("bad"), ticket("unknown"), ticket("good"), ticket("bad")]

    decisions = decide(tickets, policy=policy(), scorer=ByHand(by_id=by_id))

    assert [(each.verdict.status, each.verdict.stage) for each in decisions] == [
        ("review", "policy"),
        ("review", "answers"),
        ("accept", "policy"),
        ("review", "policy"),
    ]
    assert {each.policy for each in decisions} == {policy().ref}
    assert {each.model for each in decisions} == {MODEL}


def test_no_tickets_are_no_decisions_and_no_inference() -> None:
    scorer = ByHand(ACCEPTED)

    assert decide([], policy=policy(), scorer=scorer) == ()
    assert scorer.asked == []


@pytest.mark.parametrize("state", ["", "  \n", "\u200b\ufeff", {}, [], {"subject": "", "body": None}])
def test_an_empty_state_goes_to_review_without_inference(state: JsonValue) -> None:
    scorer = ByHand(ACCEPTED)

    decisions = decide([ticket("empty", state=state), ticket("full")], policy=policy(), scorer=scorer)

    assert scorer.asked == [(("full",), LABELS)]
    assert decisions[0].verdict.stage is Stage.STATE
    assert decisions[0].verdict.status is Status.REVIEW
    assert decisions[0].answers == {}
    assert decisions[0].probabilities == {}
    assert decisions[1].verdict.status is Status.ACCEPT


def test_a_scorers_exception_passes_through() -> None:
    class Broken(ByHand):
        def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
            raise TimeoutError("the model hangs")

    with pytest.raises(TimeoutError, match="the model hangs"):
        decide([ticket()], policy=policy(), scorer=Broken())


@pytest.mark.parametrize("given", [0, 1, 3])
def test_a_scorer_that_loses_or_adds_tickets_is_refused(given: int) -> None:
    class Miscounts(ByHand):
        def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
            return [Scores(ACCEPTED)] * given

    with pytest.raises(ScorerMisbehavedError, match=rf"{given} results? for 2 tickets"):
        decide([ticket("a"), ticket("b")], policy=policy(), scorer=Miscounts())


def test_answers_that_are_no_object_go_to_review() -> None:
    class Nonsense(ByHand):
        def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
            return [Scores(answers=["urgent", 0.9])] * len(tickets)  # type: ignore[arg-type]

    (decision,) = decide([ticket()], policy=policy(), scorer=Nonsense())

    assert decision.verdict.stage is Stage.ANSWERS
    assert decision.answers == ["urgent", 0.9]


# Truncation


def test_a_truncated_state_goes_to_review_and_names_the_questions() -> None:
    decision = decide_one(ACCEPTED, policy(), truncated=["urgent", "billing"])

    assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.ANSWERS)
    assert [reason.split(":")[0] for reason in decision.verdict.reasons] == [
        'question "urgent"',
        'question "billing"',
    ]
    assert decision.truncated == ("billing", "urgent")
    assert decision.answers == ACCEPTED
    assert decision.probabilities == {}


def test_a_policy_may_allow_truncation_which_is_recorded_all_the_same() -> None:
    decision = decide_one(ACCEPTED, policy(top='on_truncation = "allow"'), truncated=["urgent"])

    assert decision.verdict.status is Status.ACCEPT
    assert decision.truncated == ("urgent",)


# Abstention


class Reads(ByHand):
    """Remembers what it was given to read."""

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        self.read = [each.state for each in tickets]
        return super().score(tickets, questions)


def test_the_model_reads_what_the_policy_leaves_and_the_ticket_stays_as_it_came() -> None:
    given = ticket(state={"body": "<p>I paid twice.</p><p>-- </p><p>Ada</p>", "from": "> quoted"})
    before = given.to_json()
    scorer = Reads(ACCEPTED)

    (decision,) = decide([given], policy=policy(top='clean = ["signatures", "html"]'), scorer=scorer)

    assert scorer.read == [{"body": "I paid twice.", "from": "> quoted"}]
    assert decision.verdict.status == Status.ACCEPT
    assert given.to_json() == before


def test_a_ticket_of_which_cleaning_leaves_nothing_goes_to_a_person() -> None:
    scorer = ByHand(ACCEPTED)

    (decision,) = decide(
        [ticket(state="> How is it?\n")], policy=policy(top='clean = ["quoted_replies"]'), scorer=scorer
    )

    assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.STATE)
    assert decision.verdict.reasons == (
        "nothing is left of the state once it is cleaned (quoted_replies): there is nothing to read",
    )
    assert scorer.asked == []


@pytest.mark.parametrize("top", ["", 'on_truncation = "allow"'])
def test_a_model_that_does_not_stand_by_its_answers_sends_to_review_and_they_select_nothing(top: str) -> None:
    scorer = ByHand(ACCEPTED, abstention='the text reads as language "de", and this model reads en')

    (decision,) = decide([ticket()], policy=policy(top=top), scorer=scorer)

    assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.ANSWERS)
    assert decision.verdict.reasons == (
        'the model abstains: the text reads as language "de", and this model reads en',
    )
    # Judged anew from its record, it must not become an acceptance.
    assert decision.answers == {}
    assert decision.probabilities == {}
    assert decision.selected == ()
    assert decision.effects == ()


def test_an_unsure_answer_goes_to_review_with_what_is_broken_anyway() -> None:
    answers = support_answers(0.9, 0.55, 0.1, 0.9, 0.9)

    decision = decide_one(answers, policy(top="abstain_below = 0.6"))

    assert decision.verdict.stage is Stage.ABSTENTION
    assert decision.verdict.reasons == (
        'question "review": answer confidence 0.55 is below 0.6',
        "exactly one of billing, technical",
    )
    assert [each.rule for each in decision.violations] == ["exactly-one-of-billing-technical"]
    assert decision.selected == ("billing", "technical", "urgent")
    assert decision.probabilities == dict(zip(LABELS, (0.9, 0.55, 0.1, 0.9, 0.9), strict=True))
    assert decision.rule_truths == {
        "urgent-requires-review": None,
        "review-excludes-auto_reply": True,
        "exactly-one-of-billing-technical": False,
    }
    assert decision.effects == ()


def test_an_answer_exactly_at_the_bound_is_sure_enough() -> None:
    answers = support_answers(0.9, 0.75, 0.25, 0.8, 0.2)

    assert decide_one(answers, policy(top="abstain_below = 0.75")).verdict.status is Status.ACCEPT


def test_confidence_is_that_of_the_side_the_threshold_selects() -> None:
    text = small("", nouls=()) + '[questions.a]\ntype = "noul"\ninstructions = "?"\nthreshold = 0.9\n'
    under = policy(text, top="abstain_below = 0.6")

    # 0.7 does not reach 0.9, so what is reported is "false", with a probability of 0.3.
    assert decide_one({"a": noul(0.7)}, under).verdict.stage is Stage.ABSTENTION
    assert decide_one({"a": noul(0.3)}, under).verdict.status is Status.ACCEPT
    assert decide_one({"a": noul(0.95)}, under).verdict.status is Status.ACCEPT


# Choice, score, thresholds

KINDS = small("""
[questions.kind]
type = "choice"
instructions = "What is it?"
criteria = { bug = "broken", wish = "wanted" }
[questions.anger]
type = "score"
instructions = "How angry?"
criteria = ["calm", "cross", "angry"]
[[rules]]
implies = ["anger>=2", "kind=bug"]
[[effects]]
tool = "file"
[effects.arguments]
kind = "{labels.kind}"
level = "{labels.anger}"
known = "{labels.a}"
line = "{labels.kind} at {labels.anger}, {labels.a}"
""", nouls=["a"])  # fmt: skip


def test_choice_and_score_select_their_most_probable_and_keep_their_distributions() -> None:
    answers = {"a": noul(0.5), "kind": choice("wish", bug=0.4, wish=0.6), "anger": score(0.1, 0.2, 0.7)}

    decision = decide_one(answers, policy(KINDS))

    assert decision.selected == ("a", "anger=2", "kind=wish")
    assert decision.verdict.reasons == ("anger>=2 requires kind=bug",)
    assert decision.probabilities == {
        "a": 0.5,
        "kind": {"bug": 0.4, "wish": 0.6},
        "anger": {"0": 0.1, "1": 0.2, "2": 0.7},
    }


def test_ties_go_to_the_earlier_label_and_the_lower_level() -> None:
    # The scorer reports the later label of equals, and its distributions are written backwards.
    tied = {"type": "choice", "choice": "wish", "probabilities": {"wish": 0.5, "bug": 0.5}}
    level = {"type": "score", "score": 1.1, "probabilities": {"2": 0.45, "1": 0.2, "0": 0.35}}
    level_tied = {"type": "score", "score": 1.0, "probabilities": {"2": 0.4, "1": 0.2, "0": 0.4}}

    assert decide_one({"a": noul(0), "kind": tied, "anger": level}, policy(KINDS)).selected == (
        "anger=2",
        "kind=bug",
    )
    assert decide_one({"a": noul(0), "kind": tied, "anger": level_tied}, policy(KINDS)).selected == (
        "anger=0",
        "kind=bug",
    )


def test_a_score_selects_its_mode_and_never_a_rounded_expectation() -> None:
    # The expectation is 1.0, but nobody would call it level 1.
    answers = {"a": noul(0), "kind": choice("bug", bug=1.0, wish=0.0), "anger": score(0.45, 0.1, 0.45)}

    assert "anger=0" in decide_one(answers, policy(KINDS)).selected


def test_each_noul_has_its_own_threshold_and_the_others_the_policys() -> None:
    text = (
        small("", top="threshold = 0.7", nouls=["a"])
        + '[questions.b]\ntype = "noul"\ninstructions = "?"\nthreshold = 0.2\n'
    )

    decision = decide_one({"a": noul(0.69), "b": noul(0.2)}, policy(text))

    assert decision.selected == ("b",)


def test_labels_fill_arguments_with_their_own_types() -> None:
    answers = {"a": noul(0.5), "kind": choice("bug", bug=0.9, wish=0.1), "anger": score(0.1, 0.2, 0.7)}

    (effect,) = decide_one(answers, policy(KINDS)).effects

    assert effect.arguments == {"kind": "bug", "level": 2, "known": True, "line": "bug at 2, true"}


# Mapped questions

MAPPED = small("""
[questions.vip]
type = "noul"
from = "attributes.customer.vip"
[questions.plan]
type = "choice"
from = "attributes.plan"
criteria = { free = "pays nothing", paid = "pays" }
[questions.tries]
type = "score"
from = "attributes.tries"
criteria = ["none", "one", "many"]
[[rules]]
implies = ["vip", "plan=paid"]
""", nouls=["a"])  # fmt: skip


def facts(vip: object = True, plan: object = "paid", tries: object = 1) -> dict[str, object]:
    return {"customer": {"vip": vip}, "plan": plan, "tries": tries}


def test_a_mapped_question_never_reaches_the_scorer() -> None:
    scorer = ByHand({"a": noul(0.9)})

    (decision,) = decide([ticket(attributes=facts())], policy=policy(MAPPED), scorer=scorer)

    assert scorer.asked == [(("T-1",), ("a",))]
    assert decision.selected == ("a", "plan=paid", "tries=1", "vip")
    assert decision.verdict.status is Status.ACCEPT


def test_a_fact_has_an_origin_and_no_probability() -> None:
    decision = decide_one({"a": noul(0.9)}, policy(MAPPED), attributes=facts(vip=False))

    assert decision.probabilities == {"a": 0.9}
    assert decision.answers == {
        "a": noul(0.9),
        "vip": {"type": "noul", "value": False, "from": "attributes.customer.vip"},
        "plan": {"type": "choice", "value": "paid", "from": "attributes.plan"},
        "tries": {"type": "score", "value": 1, "from": "attributes.tries"},
    }
    assert decision.selected == ("a", "plan=paid", "tries=1")


def test_rules_hold_facts_to_account_like_answers() -> None:
    decision = decide_one({"a": noul(0.9)}, policy(MAPPED), attributes=facts(plan="free"))

    assert decision.verdict.reasons == ("vip requires plan=paid",)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, 'the ticket has no attribute "customer.vip"'),
        ({**facts(), "customer": "none"}, 'the ticket has no attribute "customer.vip"'),
        (facts(vip=None), 'attribute "customer.vip" is null, not true or false'),
        (facts(vip=1), 'attribute "customer.vip" is the number 1, not true or false'),
        (facts(vip="yes"), 'attribute "customer.vip" is "yes", not true or false'),
        (facts(plan="gold"), 'attribute "plan" is "gold", not one of free, paid'),
        (facts(plan=["paid"]), 'attribute "plan" is an array, not one of free, paid'),
        (facts(tries=3), 'attribute "tries" is the number 3, not a whole number from 0 to 2'),
        (facts(tries=-1), 'attribute "tries" is the number -1, not a whole number from 0 to 2'),
        (facts(tries=1.0), 'attribute "tries" is the number 1.0, not a whole number from 0 to 2'),
        (facts(tries=True), 'attribute "tries" is true, not a whole number from 0 to 2'),
    ],
)
def test_a_fact_that_is_missing_or_wrong_goes_to_review_by_name(
    attributes: dict[str, object], reason: str
) -> None:
    decision = decide_one({"a": noul(0.9)}, policy(MAPPED), attributes=attributes)

    assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.ANSWERS)
    assert any(each.endswith(reason) for each in decision.verdict.reasons), decision.verdict.reasons
    assert decision.selected == ()


def test_a_scorers_answer_to_a_mapped_question_was_not_asked_for() -> None:
    answers = {"a": noul(0.9), "vip": noul(0.99)}

    decision = decide_one(answers, policy(MAPPED), attributes=facts(vip=False))

    assert decision.verdict.stage is Stage.ANSWERS
    assert isinstance(decision.answers, dict)
    assert decision.answers["vip"] == noul(0.99)


def test_a_policy_of_facts_alone_needs_no_inference() -> None:
    scorer = ByHand()
    text = small('[questions.vip]\ntype = "noul"\nfrom = "attributes.vip"\n', nouls=())

    (decision,) = decide([ticket(attributes={"vip": True})], policy=policy(text), scorer=scorer)

    assert scorer.asked == []
    assert decision.selected == ("vip",)


# Observing and refusing


def test_an_observer_sees_each_gate_once_and_may_hold_a_clock() -> None:
    seen: list[tuple[str, str]] = []

    def observe(stage: Stage) -> Callable[[Verdict | None], None]:
        return lambda verdict: seen.append((stage, "passed" if verdict is None else verdict.status))

    by_id = {"good": ACCEPTED, "none": {}}
    tickets = [ticket("good"), ticket("none"), ticket("empty", state="")]
    decide(tickets, policy=policy(), scorer=ByHand(by_id=by_id), observe=observe)

    assert seen == [
        ("state", "passed"),
        ("state", "passed"),
        ("state", "review"),
        ("answers", "passed"),
        ("abstention", "passed"),
        ("policy", "passed"),
        ("answers", "review"),
    ]


def test_a_refusal_is_a_review_without_labels() -> None:
    decision = refuse(
        policy=policy().ref, model=MODEL, stage=Stage.IDENTITY, reasons=["the id was used for another text"]
    )

    assert decision.verdict.status is Status.REVIEW
    assert decision.verdict.stage is Stage.IDENTITY
    assert decision.verdict.reasons == ("the id was used for another text",)
    assert (decision.selected, decision.probabilities, decision.answers, decision.effects) == ((), {}, {}, ())
