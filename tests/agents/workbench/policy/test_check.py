"""The verdict on given answers: the same as a worker's, from any of the forms that answers come in."""

from __future__ import annotations

from typing import Any

import pytest
from ticketgate.agents.workbench.policy.check import CheckInputError, check
from ticketgate.codecs.verdict import Stage, Status

from ....support.deciding import decide_one, noul, policy, small, support_answers

ANSWERS: Any = support_answers(0.9, 0.2, 0.1, 0.8, 0.2)


@pytest.mark.parametrize(
    "given",
    [
        ANSWERS,
        {"answers": ANSWERS},
        {"model": "m", "answers": ANSWERS, "usage": {"input_tokens": 3, "output_tokens": 0}},
        {"answers": ANSWERS, "state": "Help", "attributes": {}},
        {
            "schema": "decision/1",
            "ticket_id": "T-1",
            "answers": ANSWERS,
            "ticket": {"id": "T-1", "state": "Help"},
        },
    ],
)
def test_given_answers_get_the_workers_verdict(given: Any) -> None:
    decision, worker = check(given, policy=policy()), decide_one(ANSWERS, policy())

    assert decision.verdict == worker.verdict
    assert (decision.selected, decision.violations) == (worker.selected, worker.violations)
    assert (decision.probabilities, decision.answers) == (worker.probabilities, worker.answers)
    assert decision.model.id == "given"


def test_an_empty_state_is_refused_if_one_is_given() -> None:
    assert check({"answers": ANSWERS, "state": " "}, policy=policy()).verdict.stage is Stage.STATE


def test_truncation_counts_if_it_is_given() -> None:
    decision = check({"answers": ANSWERS, "truncated": ["urgent"]}, policy=policy())

    assert decision.verdict.stage is Stage.ANSWERS


def test_malformed_answers_are_a_verdict() -> None:
    assert check({}, policy=policy()).verdict.stage is Stage.ANSWERS
    assert check({"answers": {}}, policy=policy()).verdict.stage is Stage.ANSWERS


@pytest.mark.parametrize("given", [None, 1, "x", [], True])
def test_what_is_no_object_holds_no_answers(given: Any) -> None:
    with pytest.raises(CheckInputError, match="answers must be an object"):
        check(given, policy=policy())


def test_a_question_may_be_called_answers() -> None:
    text = small("", nouls=["answers"])

    assert check({"answers": noul(0.9)}, policy=policy(text)).selected == ("answers",)  # type: ignore[dict-item]
    assert check({"answers": {"answers": noul(0.9)}}, policy=policy(text)).selected == ("answers",)  # type: ignore[dict-item]


MAPPED = small("""
[questions.vip]
type = "noul"
from = "attributes.customer.vip"
[[effects]]
tool = "t"
arguments = { name = "{attributes.customer.name}", id = "{ticket.id}" }
""", nouls="a")  # fmt: skip


def test_facts_come_from_given_attributes() -> None:
    given: Any = {
        "answers": {"a": noul(1)},
        "attributes": {"customer": {"vip": True, "name": "Ida"}},
        "id": "T-9",
    }

    decision = check(given, policy=policy(MAPPED))

    assert decision.selected == ("a", "vip")
    assert decision.effects[0].arguments == {"name": "Ida", "id": "T-9"}


def test_facts_of_a_recorded_decision_are_judged_again() -> None:
    attributes = {"customer": {"vip": True, "name": "Ida"}}
    recorded: Any = decide_one({"a": noul(1)}, policy(MAPPED), attributes=attributes).answers

    bare = check(recorded, policy=policy(MAPPED))
    record: Any = {"answers": recorded, "ticket": {"id": "T-1", "attributes": attributes}}
    whole = check(record, policy=policy(MAPPED))

    assert bare.selected == whole.selected == ("a", "vip")
    assert bare.verdict.reasons == ('effect t: the ticket has no attribute "customer.name"',)
    assert whole.verdict.status is Status.ACCEPT
    assert whole.answers == recorded


@pytest.mark.parametrize(("answers", "kind"), [(None, "null"), ([], "an array"), ("x", "text"), (3, "3")])
def test_answers_that_are_no_object_are_called_so(answers: Any, kind: str) -> None:
    with pytest.raises(
        CheckInputError, match=f"answers must be an object from question id to answer, not .*{kind}"
    ):
        check({"answers": answers, "state": "Help"}, policy=policy())


def test_a_question_called_answers_may_be_answered_with_null() -> None:
    asked = policy(small("", nouls=["answers"]))

    assert check({"answers": {"type": "noul", "noul": 0.9}}, policy=asked).selected == ("answers",)
    assert check({"answers": None}, policy=asked).verdict.reasons == (
        'question "answers": the answer must be an object, not null',
    )
