"""2. A scorer answers a policy's questions; the policy judges the whole assignment, and changes nothing in it."""

from __future__ import annotations

from ticketgate.codecs import Stage, Status

from ..support.deciding import decide_one, noul, policy

POLICY = policy(
    """
    name = "triage"
    version = "1"

    [questions.urgent]
    type = "noul"
    instructions = "Must this be handled today?"

    [questions.review]
    type = "noul"
    instructions = "Should a person look at it first?"

    [[rules]]
    id = "urgent-review"
    implies = ["urgent", "review"]

    [[effects]]
    when = "urgent"
    tool = "page_on_call"
    """
)


def test_what_keeps_every_rule_is_accepted_with_its_effects() -> None:
    decision = decide_one({"urgent": noul(0.9), "review": noul(0.8)}, POLICY)

    assert decision.verdict.status is Status.ACCEPT
    assert decision.selected == ("review", "urgent")
    assert [effect.tool for effect in decision.effects] == ["page_on_call"]


def test_what_breaks_a_rule_goes_to_review_as_it_was_scored() -> None:
    decision = decide_one({"urgent": noul(0.9), "review": noul(0.2)}, POLICY)

    assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.POLICY)
    assert [violation.rule for violation in decision.violations] == ["urgent-review"]
    assert decision.probabilities == {"urgent": 0.9, "review": 0.2}
    assert not decision.effects


def test_answers_that_cannot_be_believed_go_to_review_before_any_rule() -> None:
    decision = decide_one({"urgent": noul(1.7), "review": noul(0.2)}, POLICY)

    assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.ANSWERS)
