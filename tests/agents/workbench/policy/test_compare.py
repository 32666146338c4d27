"""Two policies side by side, against brute force; and recorded decisions judged anew."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.policy import parse_policy, violations
from ticketgate.agents.workbench.policy import counting as counting_module
from ticketgate.agents.workbench.policy.compare import Comparison, Turned, compare
from ticketgate.agents.workbench.policy.rejudge import rejudge
from ticketgate.codecs.values.strict import JsonValue

from ....support.deciding import SUPPORT, policy, record, small
from ....support.random_policies import Drawn, atom_texts, drawn_policies, naive_rule, rule_documents
from .test_lint import dense, rule

KIND = '[questions.kind]\ntype = "choice"\ninstructions = "?"\ncriteria = {{ bug = "1", wish = "2"{} }}\n'


def compared(old: str, new: str, *, nouls: str = "abc") -> Comparison:
    return compare(parse_policy(small(old, nouls=nouls)), parse_policy(small(new, nouls=nouls)))


def test_a_policy_beside_itself_changes_nothing() -> None:
    same = compare(policy(), policy())

    assert same.is_same
    assert same.assignments == 32
    assert same.newly_accepted == same.no_longer_accepted == Turned(count=0, examples=())


def test_assignments_that_turn_are_counted_with_examples() -> None:
    changed = compared(rule('implies = ["a", "b"]', "x"), rule('implies = ["b", "a"]', "x"))

    assert changed.no_longer_accepted == Turned(count=2, examples=(("b",),))
    assert changed.newly_accepted == Turned(count=2, examples=(("a",),))
    assert changed.changes == ("rule x said: a requires b; it says: b requires a",)


@given(st.data(), drawn_policies(max_questions=4))
def test_what_turns_agrees_with_brute_force(data: st.DataObject, old: Drawn) -> None:
    rules = data.draw(st.lists(rule_documents(atom_texts(old.domains)), max_size=4))
    kept = (
        data.draw(st.lists(st.sampled_from(old.rules), unique_by=lambda each: each["id"]))
        if old.rules
        else []
    )
    document = old.document | {"rules": kept + [{"id": f"new-{n}", **each} for n, each in enumerate(rules)]}
    new = Drawn(document, old.domains)

    found = compare(parse_policy(old.text), parse_policy(new.text))

    turned: dict[tuple[bool, bool], int] = {}
    for values in itertools.product(*old.domains.values()):
        one = dict(zip(old.domains, values, strict=True))
        verdicts = (holds(old, one), holds(new, one))
        turned[verdicts] = turned.get(verdicts, 0) + 1
    assert found.no_longer_accepted.count == turned.get((True, False), 0)
    assert found.newly_accepted.count == turned.get((False, True), 0)
    for examples, expected in (
        (found.no_longer_accepted.examples, (True, False)),
        (found.newly_accepted.examples, (False, True)),
    ):
        assert bool(examples) is bool(turned.get(expected))
        for labels in examples:
            said = [not violations(parse_policy(each.text).rules, set(labels)) for each in (old, new)]
            assert tuple(said) == expected


def holds(drawn: Drawn, values: dict[str, Any]) -> bool:
    return all(naive_rule(each, values) for each in drawn.rules)


def test_what_cannot_be_counted_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_module, "MAX_STATES", 64)
    old = dense(60, 100, seed=1)
    names = [f"q{index}" for index in range(60)]

    same = compare(parse_policy(old), parse_policy(old))
    changed = compare(
        parse_policy(old), parse_policy(old + rule(f'forbid = ["{names[5]}", "{names[40]}"]', "z"))
    )

    assert (same.no_longer_accepted.count, same.newly_accepted.count) == (0, 0)
    assert changed.newly_accepted == Turned(count=0, examples=())
    assert changed.no_longer_accepted.count is None
    assert {names[5], names[40]} <= set(changed.no_longer_accepted.examples[0])


def test_labels_that_only_one_policy_knows_are_named_and_left_out() -> None:
    changed = compared(KIND.format("") + rule('forbid = ["kind=wish"]'), KIND.format(', other = "3"'))

    assert changed.notes == ("only one of the policies knows kind=other: not compared",)
    assert changed.newly_accepted.count == 8
    assert changed.assignments == 16
    assert "question kind is worded otherwise" in changed.changes


def test_a_question_of_another_kind_is_named() -> None:
    changed = compared(
        KIND.format("") + rule('any_of = ["kind=wish"]'), '[questions.kind]\ntype="noul"\ninstructions="?"'
    )

    assert changed.notes


def test_every_other_change_is_a_sentence() -> None:
    old = small(rule('excludes = ["a", "b"]', "x") + rule('any_of = ["a"]', "y"), top="abstain_below = 0.6")
    new = small(
        rule('excludes = ["a", "b"]\nmessage = "not both"', "x")
        + rule('any_of = ["b"]', "z")
        + '[[effects]]\ntool = "t"',
        nouls="abd",
        top='threshold = 0.7\non_truncation = "allow"\nclean = ["signatures", "html"]',
    )

    changes = compare(parse_policy(old), parse_policy(new.replace('version = "1"', 'version = "2"'))).changes

    assert set(changes) == {
        "version was 1, is 2",
        "abstain_below was 0.6, is not set",
        "on_truncation was review, is allow",
        "what is cleaned off a ticket was nothing, is html, signatures",
        "threshold of a was 0.5, is 0.7",
        "threshold of b was 0.5, is 0.7",
        "question c is gone",
        "question d is new",
        "rule x was told as: a excludes b; it is told as: not both",
        "rule y is gone: always a",
        "rule z is new: always b",
        "the effects change: none before, t now",
    }


# Recorded decisions


CAUTIOUS = policy(top="threshold = 0.85")


def test_recorded_decisions_that_would_change_are_counted_by_kind() -> None:
    records: list[JsonValue] = [
        record("kept", 0.9, 0.9, 0.1, 0.9, 0.2),
        record("no-route", 0.1, 0.1, 0.8, 0.8, 0.2),
        record("mended", 0.8, 0.2, 0.1, 0.9, 0.2),
        record("otherwise", 0.8, 0.2, 0.1, 0.8, 0.2),
    ]

    found = rejudge(records, policy(), CAUTIOUS)

    assert (found.compared, found.same) == (4, 1)
    assert dict(found.turned) == {"accept to review": 1, "review to accept": 1, "other reasons": 1}
    assert found.examples["accept to review"][0].ticket_id == "no-route"
    assert found.examples["accept to review"][0].reasons == ("exactly one of billing, technical",)
    assert found.by_another_policy == 0
    assert json.loads(json.dumps(found.to_json()))["changed"]["review to accept"] == 1


def test_the_envelope_of_consume_is_opened() -> None:
    line: JsonValue = {"topic": "dispatch", "partition": 0, "value": record("a", 0.9, 0.9, 0.1, 0.8, 0.2)}

    assert rejudge([line], policy(), policy()).same == 1


def test_what_cannot_be_judged_is_counted_apart() -> None:
    lines: list[JsonValue] = [
        {"id": "a ticket"},
        record("empty", 0, 0, 0, 0, 0, verdict={"status": "review", "stage": "state"}),
        record("asked less", 0.9, 0.9, 0.1, 0.8, 0.2, answers={"urgent": {"type": "noul", "noul": 0.5}}),
    ]
    found = rejudge(lines, policy(), policy())

    assert found.compared == 0
    assert dict(found.not_judged) == {
        "not a decision record": 1,
        "refused at state, before a policy was asked": 1,
        "question review of the old policy was not asked": 1,
    }


def test_a_question_that_the_new_policy_no_longer_asks_does_not_count_against_it() -> None:
    fewer = SUPPORT.replace(
        '[questions.urgent]\ntype = "noul"\ninstructions = "Must this be handled today?"\n', ""
    )
    fewer = fewer.replace('[[rules]]\nimplies = ["urgent", "review"]\n', "")

    found = rejudge([record("a", 0.9, 0.2, 0.1, 0.8, 0.2)], policy(), parse_policy(fewer))

    assert dict(found.turned) == {"review to accept": 1}


def test_a_dispatched_record_without_its_ticket_is_judged_by_the_rules_alone() -> None:
    with_address = SUPPORT.replace('{ template = "received" }', '{ to = "{attributes.email}" }')

    found = rejudge([record("a", 0.1, 0.1, 0.9, 0.8, 0.2)], policy(), parse_policy(with_address))

    assert found.same == 1
