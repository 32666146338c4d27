"""What must hold of any policy and any answers."""

from __future__ import annotations

import itertools
import json
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.deciding.decide import decide
from ticketgate.agents.policy import parse_policy, violations
from ticketgate.codecs.verdict import Stage, Status

from ...support.deciding import LABELS, SUPPORT, ByHand, decide_one, noul, policy, ticket
from ...support.random_policies import Drawn, answers_of, drawn_policies, labels_of, naive_rule, values_for


@given(st.data(), drawn_policies())
def test_the_rules_agree_with_a_naive_reading(data: st.DataObject, drawn: Drawn) -> None:
    values = data.draw(values_for(drawn.domains))

    found = violations(parse_policy(drawn.text).rules, labels_of(values))

    assert [each.rule for each in found] == [
        rule["id"] for rule in drawn.rules if not naive_rule(rule, values)
    ]


@given(st.data(), drawn_policies())
def test_the_gates_agree_with_a_naive_reading(data: st.DataObject, drawn: Drawn) -> None:
    values = data.draw(values_for(drawn.domains))

    decision = decide_one(answers_of(values, drawn.domains), parse_policy(drawn.text))

    holds = all(naive_rule(rule, values) for rule in drawn.rules)
    assert decision.verdict.status is (Status.ACCEPT if holds else Status.REVIEW)
    assert set(decision.selected) == labels_of(values)


@given(st.data(), drawn_policies(max_questions=4))
def test_an_abstention_never_changes_what_a_rule_said(data: st.DataObject, drawn: Drawn) -> None:
    """A rule that is definite beside abstentions says the same whatever the abstained answers would have been."""
    values = data.draw(values_for(drawn.domains))
    abstained = data.draw(st.sets(st.sampled_from(sorted(drawn.domains))))
    known = {question: value for question, value in values.items() if question not in abstained}
    rules = parse_policy(drawn.text).rules
    said = {rule.id: rule.truth(labels_of(known), abstained) for rule in rules}

    open_ones = sorted(abstained)
    for completion in itertools.product(*(drawn.domains[question] for question in open_ones)):
        full = known | dict(zip(open_ones, completion, strict=True))
        for rule in drawn.rules:
            assert said[rule["id"]] in (None, naive_rule(rule, full))


@given(st.data(), drawn_policies(max_questions=4))
def test_a_rule_is_open_only_if_an_abstained_answer_decides_it(data: st.DataObject, drawn: Drawn) -> None:
    """Exact also where a rule names one abstained question in several atoms."""
    values = data.draw(values_for(drawn.domains))
    abstained = data.draw(st.sets(st.sampled_from(sorted(drawn.domains))))
    known = {question: value for question, value in values.items() if question not in abstained}
    open_ones = sorted(abstained)
    completions = [
        known | dict(zip(open_ones, each, strict=True))
        for each in itertools.product(*(drawn.domains[question] for question in open_ones))
    ]

    for rule, document in zip(parse_policy(drawn.text).rules, drawn.rules, strict=True):
        outcomes = {naive_rule(document, each) for each in completions}
        expected = outcomes.pop() if len(outcomes) == 1 else None
        assert rule.truth(labels_of(known), abstained) is expected


unsure = st.floats(0, 1, allow_nan=False)


@given(st.tuples(*[unsure] * 5), st.floats(0.5, 1))
def test_an_abstention_never_turns_a_violation_into_an_acceptance(
    values: tuple[float, ...], bound: float
) -> None:
    answers = {name: noul(value) for name, value in zip(LABELS, values, strict=True)}

    plain = decide_one(answers, policy())
    cautious = decide_one(answers, policy(top=f"abstain_below = {bound!r}"))

    if cautious.verdict.status is Status.ACCEPT:
        assert plain.verdict.status is Status.ACCEPT
        assert cautious.selected == plain.selected
    assert {each.rule for each in cautious.violations} <= {each.rule for each in plain.violations}
    assert cautious.probabilities == plain.probabilities
    doubtful = any(max(value, 1 - value) < bound for value in values)
    assert (cautious.verdict.stage is Stage.ABSTENTION) is doubtful


@given(st.data(), drawn_policies(max_questions=4), st.floats(0.5, 1))
def test_no_abstention_turns_a_violation_of_any_policy_into_an_acceptance(
    data: st.DataObject, drawn: Drawn, bound: float
) -> None:
    values = data.draw(values_for(drawn.domains))
    answers = answers_of(values, drawn.domains)
    for question, domain in drawn.domains.items():
        if data.draw(st.booleans()):
            answers[question] = unsure_answer(values[question], domain)
    cautious = parse_policy(json.dumps(drawn.document | {"abstain_below": bound}))

    plain, careful = decide_one(answers, parse_policy(drawn.text)), decide_one(answers, cautious)

    if plain.violations:
        assert careful.verdict.status is Status.REVIEW
    if careful.verdict.status is Status.ACCEPT:
        assert (plain.verdict.status, plain.selected) == (Status.ACCEPT, careful.selected)
    assert {each.rule for each in careful.violations} <= {each.rule for each in plain.violations}


def unsure_answer(value: Any, domain: list[Any]) -> dict[str, Any]:
    """An answer that selects the value by a hair, so that most bounds make it an abstention."""
    if isinstance(value, bool):
        return noul(0.5 if value else 0.499)
    chances = {str(each): 1 / len(domain) for each in domain}
    chances[str(value)] += 1e-6
    name = "choice" if isinstance(value, str) else "score"
    expected = sum(level * chances[str(level)] for level in domain) if name == "score" else value
    return {"type": name, name: expected, "probabilities": chances}


@given(st.data(), drawn_policies())
def test_all_rules_at_once_say_what_each_says(data: st.DataObject, drawn: Drawn) -> None:
    policy = parse_policy(drawn.text)
    selected = frozenset(labels_of(data.draw(values_for(drawn.domains))))

    assert policy.quick.truths(selected) == {rule.id: rule.truth(selected) for rule in policy.rules}


def bits(value: float) -> bytes:
    return struct.pack(">d", value)


@given(st.tuples(*[unsure] * 5))
def test_probabilities_come_out_bit_for_bit(values: tuple[float, ...]) -> None:
    answers = {name: noul(value) for name, value in zip(LABELS, values, strict=True)}

    decision = decide_one(answers, policy())

    for name, value in zip(LABELS, values, strict=True):
        recorded = decision.probabilities[name]
        assert isinstance(recorded, float)
        assert bits(recorded) == bits(value)
    assert decision.answers == answers


answer_sets = st.one_of(
    st.tuples(*[unsure] * 5).map(lambda values: {n: noul(v) for n, v in zip(LABELS, values, strict=True)}),
    st.dictionaries(st.sampled_from(LABELS), st.one_of(st.none(), unsure.map(noul), st.text())),
)
states: st.SearchStrategy[Any] = st.one_of(
    st.just(""), st.just({}), st.text(min_size=1), st.just({"subject": "Help", "body": "It is broken"})
)


@given(st.lists(st.tuples(states, answer_sets), max_size=8), st.randoms(use_true_random=False))
def test_a_decision_does_not_depend_on_its_batch(
    batch: list[tuple[Any, dict[str, object]]], random: Any
) -> None:
    tickets = [ticket(f"T-{index}", state=state) for index, (state, _) in enumerate(batch)]
    by_id = {f"T-{index}": answers for index, (_, answers) in enumerate(batch)}
    order = list(range(len(tickets)))
    random.shuffle(order)
    under, scorer = policy(SUPPORT), ByHand(by_id=by_id)

    together = decide(tickets, policy=under, scorer=scorer)
    shuffled = decide([tickets[index] for index in order], policy=under, scorer=scorer)
    alone = [decide([each], policy=under, scorer=scorer)[0] for each in tickets]

    assert list(together) == alone
    assert list(shuffled) == [together[index] for index in order]
