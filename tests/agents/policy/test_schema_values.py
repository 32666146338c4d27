"""What a JSON Schema calls a value is that value everywhere: its number and its type, in rules, effects and records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.policy import Policy, PolicyError, load_policy
from ticketgate.agents.workbench.policy.case_file import read_cases
from ticketgate.agents.workbench.policy.check import check
from ticketgate.agents.workbench.policy.compare import compare
from ticketgate.agents.workbench.policy.lint import lint
from ticketgate.agents.workbench.policy.show import mermaid, sentences
from ticketgate.agents.workbench.policy.trial import run_examples
from ticketgate.codecs.systemone.jsonschema import SchemaError, answers_to_json, questions_from_json_schema

from ...support.deciding import ByHand

PRIORITY = {"type": "integer", "minimum": 1, "maximum": 3, "description": "How pressing is it?"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "priority": PRIORITY,
        "escalate": {"type": "boolean"},
        "size": {"enum": [10, 20, "large", None, True]},
    },
}
EFFECT = """
[[effects]]
tool = "queue"
[effects.arguments]
level = "{labels.priority}"
size = "{labels.size}"
now = "{labels.escalate}"
said = "P{labels.priority}"
"""


def policy(folder: Path, text: str = EFFECT, **properties: Any) -> Policy:
    schema = SCHEMA if not properties else {"type": "object", "properties": properties}
    (folder / "ticket.schema.json").write_text(json.dumps(schema), "utf-8")
    path = folder / "policy.toml"
    path.write_text(f'name = "p"\nversion = "1"\nschema = "ticket.schema.json"\n{text}', "utf-8")
    return load_policy(path)


def score(*chances: float) -> dict[str, Any]:
    expected = sum(level * each for level, each in enumerate(chances))
    return {
        "type": "score",
        "score": expected,
        "probabilities": {str(n): each for n, each in enumerate(chances)},
    }


def choice(label: str, *labels: str) -> dict[str, Any]:
    return {
        "type": "choice",
        "choice": label,
        "probabilities": {each: float(each == label) for each in labels},
    }


SIZES = ("10", "20", "large", "null", "true")
ANSWERS = {
    "priority": score(0.1, 0.7, 0.2),
    "escalate": {"type": "noul", "noul": 0.9},
    "size": choice("10", *SIZES),
}


def test_the_decision_says_the_schemas_own_value(tmp_path: Path) -> None:
    decision = check(dict(ANSWERS), policy=policy(tmp_path))

    assert decision.selected == ("escalate", "priority=2", "size=10")
    assert decision.probabilities["priority"] == {"1": 0.1, "2": 0.7, "3": 0.2}
    assert decision.values == {"priority": 2, "escalate": True, "size": 10}
    # What the model answered stays as it answered it: a level of the protocol counts from 0.
    assert isinstance(decision.answers, dict)
    assert decision.answers["priority"] == ANSWERS["priority"]


@pytest.mark.parametrize(
    ("label", "value"), [("10", 10), ("20", 20), ("large", "large"), ("null", None), ("true", True)]
)
def test_an_effect_sends_the_value_in_its_own_type(tmp_path: Path, label: str, value: object) -> None:
    decision = check(ANSWERS | {"size": choice(label, *SIZES)}, policy=policy(tmp_path))

    (effect,) = decision.effects
    assert effect.arguments == {"level": 2, "size": value, "now": True, "said": "P2"}
    assert type(effect.arguments["size"]) is type(value)


@pytest.mark.parametrize(
    ("atom", "holds"),
    [
        ("priority=2", True),
        ("priority>=2", True),
        ("priority>=3", False),
        ("priority<=2", True),
        ("priority<2", False),
        ("priority!=1", True),
        ("!priority=3", True),
        ("size=10", True),
        ("size!=10", False),
    ],
)
def test_a_rule_compares_with_the_schemas_own_values(tmp_path: Path, atom: str, holds: bool) -> None:
    rules = f'[[rules]]\nany_of = ["{atom}"]'

    assert (not check(dict(ANSWERS), policy=policy(tmp_path, rules)).violations) is holds


@pytest.mark.parametrize("level", ["0", "4", "1.5"])
def test_a_level_that_the_schema_has_not_is_refused_with_those_that_it_has(
    tmp_path: Path, level: str
) -> None:
    with pytest.raises(PolicyError, match=rf'no level "{level}"\s+its levels are 1, 2, 3'):
        policy(tmp_path, f'[[rules]]\nany_of = ["priority={level}"]')


@pytest.mark.parametrize("values", [[5, 10, 20], [10, 5.5, 20]])
def test_numbers_of_an_enum_can_be_ordered(tmp_path: Path, values: list[float]) -> None:
    read = policy(tmp_path, '[[rules]]\nimplies = ["size>=10", "!size=20"]', size={"enum": values})
    labels = [str(each) for each in values]

    broken = [each for each in labels if check({"size": choice(each, *labels)}, policy=read).violations]

    assert broken == ["20"]


def test_words_of_an_enum_cannot_be_ordered(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="orders the labels of a choice"):
        policy(tmp_path, '[[rules]]\nany_of = ["size>=10"]')


def test_cases_and_shows_speak_of_the_same_values(tmp_path: Path) -> None:
    read = policy(tmp_path, '[[rules]]\nimplies = ["priority=3", "escalate"]' + EFFECT)
    table = """
[[cases]]
answers = { priority = 3, escalate = false, size = 10 }
expect = "review"
selected = ["priority=3", "size=10"]

[[cases]]
answers = { priority = { 1 = 0.2, 3 = 0.8 }, escalate = true, size = "large" }
expect = "accept"
"""
    found = [check(each.given, policy=read) for each in read_cases(table, source="cases", policy=read)]

    assert [each.verdict.status.value for each in found] == ["review", "accept"]
    assert found[0].selected == ("priority=3", "size=10")
    assert found[1].values == {"priority": 3, "escalate": True, "size": "large"}
    assert "priority is a level of 1, 2, 3" in "\n".join(sentences(read))
    assert '["priority=3"]' in mermaid(read)
    assert "priority=0" not in mermaid(read)


def test_a_changed_bound_is_told_and_changes_the_hash(tmp_path: Path) -> None:
    one = policy(tmp_path, "", priority=PRIORITY)
    other = policy(tmp_path, "", priority=PRIORITY | {"minimum": 2, "maximum": 4})

    assert one.hash != other.hash
    assert any("only one of the policies knows priority=1" in note for note in compare(one, other).notes)


def test_the_hash_tells_ten_from_its_text(tmp_path: Path) -> None:
    number, text = (policy(tmp_path, "", size={"enum": [each, "x"]}) for each in (10, "10"))

    assert number.hash != text.hash
    assert any("size" in change for change in compare(number, text).changes)


def test_lint_names_each_rule_that_means_something_else_than_it_did(tmp_path: Path) -> None:
    rules = """
[[rules]]
id = "turned"
implies = ["priority>=2", "escalate"]
[[rules]]
id = "new"
implies = ["priority=3", "escalate"]
[[rules]]
id = "elsewhere"
implies = ["escalate", "!size=20"]
[[effects]]
when = "priority=1"
tool = "later"
"""
    found = [each for each in lint(policy(tmp_path, rules)).findings if each.code == "level_is_a_value"]

    assert [each.subjects for each in found] == [("turned",), ("later",)]
    assert "priority>=2" in found[0].message
    assert found[0].line is not None


def test_a_schema_from_zero_turns_nothing(tmp_path: Path) -> None:
    schema = {"type": "integer", "minimum": 0, "maximum": 2}
    read = policy(tmp_path, '[[rules]]\nany_of = ["priority>=1"]', priority=schema)

    assert not [each for each in lint(read).findings if each.code == "level_is_a_value"]


def test_examples_say_the_schemas_values(tmp_path: Path) -> None:
    text = """
name = "p"
version = "1"
[questions.priority]
type = "score"
criteria = ["low", "middle", "high"]
values = [1, 2, 3]
[questions.priority.examples]
fits = { state = "now", label = 3 }
other = { state = "whenever", label = 1 }
"""
    (tmp_path / "policy.toml").write_text(text, "utf-8")
    read = load_policy(tmp_path / "policy.toml")

    results = run_examples(read, ByHand({"priority": score(0.0, 0.1, 0.9)}))

    assert [(each.said, each.passed) for each in results] == [("3", True), ("3", False)]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ("[1, 2]", "values must be as many as its levels"),
        ("[3, 2, 1]", "whole numbers that rise"),
        ("[1, 1, 2]", "whole numbers that rise"),
        ('["a", "b", "c"]', "values of a score must be whole numbers"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(tmp_path: Path, values: str, what: str) -> None:
    text = f'name = "p"\nversion = "1"\n[questions.a]\ntype = "score"\ncriteria = ["x", "y", "z"]\nvalues = {values}'
    (tmp_path / "policy.toml").write_text(text, "utf-8")

    with pytest.raises(PolicyError, match=what):
        load_policy(tmp_path / "policy.toml")


def test_a_fact_is_one_of_the_values(tmp_path: Path) -> None:
    text = """
name = "p"
version = "1"
[questions.tier]
type = "score"
from = "attributes.tier"
criteria = ["low", "middle", "high"]
values = [1, 2, 3]
[[effects]]
tool = "queue"
arguments = { tier = "{labels.tier}" }
"""
    (tmp_path / "policy.toml").write_text(text, "utf-8")
    read = load_policy(tmp_path / "policy.toml")

    decision = check({"answers": {}, "attributes": {"tier": 3}}, policy=read)
    assert decision.selected == ("tier=3",)
    assert decision.effects[0].arguments == {"tier": 3}
    refused = check({"answers": {}, "attributes": {"tier": 0}}, policy=read)
    assert refused.verdict.reasons == (
        'question "tier": attribute "tier" is the number 0, not one of 1, 2, 3',
    )


@given(
    st.integers(-1000, 1000).flatmap(
        lambda least: st.tuples(st.just(least), st.integers(1, 9), st.integers(0, 9))
    )
)
def test_whatever_the_bounds_the_answer_is_within_them(drawn: tuple[int, int, int]) -> None:
    least, more, place = drawn
    place = min(place, more)
    schema: Any = {"type": "integer", "minimum": least, "maximum": least + more}
    answer = score(*(float(n == place) for n in range(more + 1)))

    whole: Any = {"type": "object", "properties": {"p": schema}}
    (question,) = questions_from_json_schema(whole).values()
    assert question.values == tuple(range(least, least + more + 1))
    assert answers_to_json({"p": answer}, whole) == {"p": least + place}


def test_a_required_property_that_stays_unanswered_is_said() -> None:
    schema: Any = {**SCHEMA, "required": ["priority"]}

    assert answers_to_json({}, SCHEMA) == {}
    with pytest.raises(SchemaError, match=r"^properties\.priority: is required, and not answered"):
        answers_to_json({}, schema)


def test_an_enum_has_as_many_values_as_a_choice_has_options() -> None:
    def asked(count: int) -> Any:
        return {"type": "object", "properties": {"p": {"enum": list(range(count))}}}

    assert len(questions_from_json_schema(asked(255))["p"].labels) == 255
    with pytest.raises(SchemaError, match=r"properties\.p: has 256 values, more than 255"):
        questions_from_json_schema(asked(256))
