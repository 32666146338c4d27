"""A person's labels judged by the policy's own code, and the suggestions that lie nearest to a model's."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.policy import Policy, parse_policy
from ticketgate.agents.settling.judging import (
    Reviewed,
    effects_of,
    judge_labels,
    judge_settlement,
)
from ticketgate.agents.settling.nearest import nearest
from ticketgate.agents.settling.refusal import Code, Refusal
from ticketgate.codecs.records.identity import effect_key
from ticketgate.codecs.records.settlement import effects_digest
from ticketgate.codecs.verdict import Stage, Status

from ...support.deciding import SUPPORT as SUPPORT_TEXT
from ...support.deciding import decide_one, policy, support_answers, ticket
from ...support.random_policies import Drawn, answers_of, drawn_policies, labels_of, naive_rule, values_for
from ...support.settlements import review_record, settling

SUPPORT = policy()
# urgent without review, so that the first rule is broken.
DECIDED = decide_one(support_answers(0.9, 0.1, 0.2, 0.8, 0.1), SUPPORT)
TICKET = ticket()
RECORD = review_record(DECIDED, TICKET)
REVIEWED = Reviewed(RECORD, TICKET)
RIGHT = ("billing", "review", "urgent")


def accepting(labels: tuple[str, ...], under: Policy = SUPPORT, **changes: Any) -> Any:
    """A settlement of RECORD as a console makes it that shows what follows."""
    shown = judge_labels(TICKET, frozenset(labels), policy=under, record=RECORD)
    effects = effects_of(shown, RECORD.idempotency_key) if isinstance(shown, Decision) else ()
    return settling(RECORD, labels=labels, policy=under.hash, effects=effects_digest(effects), **changes)


def test_the_case_of_these_tests_is_in_review() -> None:
    assert DECIDED.verdict.status is Status.REVIEW


def test_a_persons_labels_are_accepted_by_the_same_rules_with_the_effects_of_the_tickets_key() -> None:
    found = judge_settlement(accepting(RIGHT), REVIEWED, policy=SUPPORT)

    assert isinstance(found, Decision)
    assert found.verdict.status is Status.ACCEPT
    assert found.selected == RIGHT
    assert [each.tool for each in found.effects] == ["assign_queue"]
    (effect,) = effects_of(found, RECORD.idempotency_key)
    assert effect.idempotency_key == effect_key(RECORD.idempotency_key, 0)


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (("billing", "urgent"), Code.JUDGED_OTHERWISE),
        (("auto_reply", "billing", "review"), Code.JUDGED_OTHERWISE),
        ((), Code.JUDGED_OTHERWISE),
        (("billing", "unheard-of"), Code.WRONG_LABELS),
    ],
)
def test_what_the_policy_does_not_accept_is_not_taken(labels: tuple[str, ...], code: Code) -> None:
    found = judge_settlement(accepting(labels), REVIEWED, policy=SUPPORT)

    assert isinstance(found, Refusal)
    assert found.code is code


def test_a_policy_that_changed_between_look_and_lane_is_judged_by_and_only_what_was_shown_is_taken() -> None:
    edited = policy(SUPPORT_TEXT.replace('version = "1"', 'version = "2"'))
    stricter = policy(SUPPORT_TEXT + '[[rules]]\nforbid = ["urgent", "billing"]\n')
    other = policy(SUPPORT_TEXT.replace('queue = "billing"', 'queue = "other"'))
    sent = accepting(RIGHT)

    same = judge_settlement(sent, REVIEWED, policy=edited)
    refused = [judge_settlement(sent, REVIEWED, policy=each) for each in (stricter, other)]

    assert isinstance(same, Decision)
    assert same.policy.version == "2"
    assert [each.code for each in refused if isinstance(each, Refusal)] == [
        Code.JUDGED_OTHERWISE,
        Code.EFFECTS_DIFFER,
    ]
    assert all("policy has changed" in each.reasons[-1] for each in refused if isinstance(each, Refusal))


def test_without_its_text_nothing_is_accepted() -> None:
    found = judge_settlement(accepting(RIGHT), Reviewed(RECORD, None), policy=SUPPORT)

    assert isinstance(found, Refusal)
    assert found.code is Code.NO_TEXT


FACTS = """
name = "facts"
version = "1"
abstain_below = 0.9

[questions.kind]
type = "choice"
instructions = "Which?"
criteria = { bug = "b", other = "o" }

[questions.vip]
type = "noul"
from = "attributes.vip"

[questions.anger]
type = "score"
instructions = "How angry?"
criteria = ["calm", "cross", "angry"]

[[rules]]
implies = ["vip", "kind=bug"]

[[effects]]
tool = "tell"
arguments = { name = "{attributes.name}" }
"""


def facts_case(**attributes: Any) -> tuple[Policy, Any, Any]:
    under = policy(FACTS)
    answers = {
        "kind": {"type": "choice", "choice": "other", "probabilities": {"bug": 0.4, "other": 0.6}},
        "anger": {"type": "score", "score": 1.0, "probabilities": {"0": 0.2, "1": 0.6, "2": 0.2}},
    }
    of = ticket(attributes=attributes)
    return under, of, review_record(decide_one(answers, under, attributes=attributes), of)


def test_facts_stay_facts_and_a_person_is_sure_where_a_model_was_not() -> None:
    under, of, record = facts_case(vip=True, name="n")

    right = judge_labels(of, frozenset({"kind=bug", "anger=1", "vip"}), policy=under, record=record)
    denied = judge_labels(of, frozenset({"kind=bug", "anger=1"}), policy=under, record=record)

    assert isinstance(right, Decision)
    assert right.verdict.status is Status.ACCEPT
    assert isinstance(denied, Refusal)
    assert "a fact" in denied.reasons[0]


@pytest.mark.parametrize(
    "labels", [{"kind=bug", "vip"}, {"kind=bug", "kind=other", "anger=1", "vip"}, {"anger=1", "vip"}]
)
def test_a_choice_and_a_score_have_one_label_each(labels: set[str]) -> None:
    under, of, record = facts_case(vip=True, name="n")

    found = judge_labels(of, frozenset(labels), policy=under, record=record)

    assert isinstance(found, Refusal)
    assert found.code is Code.WRONG_LABELS


def test_a_missing_fact_keeps_a_ticket_from_being_accepted() -> None:
    under, of, record = facts_case(name="n")

    found = judge_labels(of, frozenset({"kind=bug", "anger=1"}), policy=under, record=record)

    assert isinstance(found, Decision)
    assert found.verdict.stage is Stage.ANSWERS
    assert nearest(of, record, under).suggestions == ()


def test_an_effect_that_cannot_be_filled_in_keeps_it_too() -> None:
    under, of, record = facts_case(vip=True)

    found = judge_labels(of, frozenset({"kind=bug", "anger=1", "vip"}), policy=under, record=record)

    assert isinstance(found, Decision)
    assert found.verdict.status is Status.REVIEW
    assert nearest(of, record, under).suggestions == ()


def test_suggestions_change_the_fewest_questions_and_keep_the_policys_order() -> None:
    found = nearest(TICKET, RECORD, SUPPORT)

    assert found.model == ("billing", "urgent")
    assert [each.labels for each in found.suggestions] == [("billing",), ("billing", "review", "urgent")]
    assert [each.changed for each in found.suggestions] == [("urgent",), ("review",)]


def test_facts_are_never_suggested_away() -> None:
    under, of, record = facts_case(vip=True, name="n")

    found = nearest(of, record, under)

    assert [each.labels for each in found.suggestions] == [("anger=1", "kind=bug", "vip")]


@given(st.data(), drawn_policies(max_questions=4))
def test_a_person_is_judged_as_a_model_is_that_is_sure(data: st.DataObject, drawn: Drawn) -> None:
    under, values = parse_policy(drawn.text), data.draw(values_for(drawn.domains))
    models = decide_one(answers_of(values, drawn.domains), under)

    persons = judge_labels(TICKET, frozenset(labels_of(values)), policy=under, record=RECORD)

    assert isinstance(persons, Decision)
    assert persons.verdict == models.verdict
    assert persons.selected == models.selected
    assert persons.effects == models.effects


@given(st.data(), drawn_policies(max_questions=4))
def test_suggestions_are_the_nearest_that_a_naive_search_finds(data: st.DataObject, drawn: Drawn) -> None:
    under, values = parse_policy(drawn.text), data.draw(values_for(drawn.domains))
    record = replace(RECORD, probabilities=decide_one(answers_of(values, drawn.domains), under).probabilities)

    found = nearest(TICKET, record, under, most=10_000)

    every = [
        dict(zip(drawn.domains, each, strict=True)) for each in itertools.product(*drawn.domains.values())
    ]
    good = [each for each in every if all(naive_rule(rule, each) for rule in drawn.rules)]

    def distance(other: dict[str, Any]) -> int:
        return sum(other[name] != values[name] for name in values)

    least = min(map(distance, good), default=None)
    assert found.is_whole
    assert {each.labels for each in found.suggestions} == {
        tuple(sorted(labels_of(each))) for each in good if distance(each) == least
    }


def test_a_search_that_ends_at_its_bound_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ticketgate.agents.settling.nearest.MOST_LOOKED_AT", 2)

    found = nearest(TICKET, RECORD, SUPPORT)

    assert not found.is_whole


VALUED = """
name = "v"
version = "1"
[questions.priority]
type = "score"
criteria = ["low", "middle", "high"]
values = [1, 2, 3]
[[rules]]
forbid = ["priority=2"]
[[effects]]
tool = "queue"
arguments = { level = "{labels.priority}" }
"""


@pytest.mark.parametrize("level", [1, 3])
def test_a_person_settles_by_the_values_that_the_policy_calls_its_levels(level: int) -> None:
    under = parse_policy(VALUED)
    probabilities = {"0": 0.1, "1": 0.8, "2": 0.1}
    answers = {"priority": {"type": "score", "score": 1.0, "probabilities": probabilities}}
    decided, asked = decide_one(answers, under), ticket()
    record = review_record(decided, asked)

    found = judge_labels(asked, frozenset({f"priority={level}"}), policy=under, record=record)

    assert decided.verdict.status is Status.REVIEW
    assert isinstance(found, Decision)
    assert (found.selected, found.values) == ((f"priority={level}",), {"priority": level})
    assert [each.arguments for each in found.effects] == [{"level": level}]
    assert [each.labels for each in nearest(asked, record, under).suggestions] == [
        ("priority=1",),
        ("priority=3",),
    ]
