"""GLiNER2.5 classification schemas as policies: the rules say what the constraints say."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ticketgate.agents.policy import Policy, parse_policy, violations
from ticketgate.agents.workbench.policy.gliner import ImportRefusedError, policy_document

TASKS: dict[str, Any] = {
    "intent": {"labels": ["read", "write", "delete"], "min_labels": 1, "max_labels": 1},
    "effects": {"labels": {"none": None, "create": "makes a file", "delete": None}, "threshold": 0.4},
    "risk": {"labels": ["safe", "low", "high"], "min_labels": 1, "max_labels": 1, "ordered": True},
}


def schema(*constraints: Any, tasks: dict[str, Any] = TASKS) -> dict[str, Any]:
    return {"version": 3, "tasks": tasks, "constraints": list(constraints)}


def imported(*constraints: Any, tasks: dict[str, Any] = TASKS) -> Policy:
    document = policy_document(schema(*constraints, tasks=tasks), name="imported", version="1")
    return parse_policy(json.dumps(document))


def ref(task: str, label: str) -> dict[str, Any]:
    return {"type": "LabelRef", "task": task, "label": label}


def level(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "task": "risk", "level": name}


Chosen = dict[str, frozenset[str]]


def naive(node: Any, chosen: Chosen) -> bool:  # noqa: C901 - one case for each kind
    """Whether a constraint holds, as the schema's own documentation says it."""

    def child(name: str) -> bool:
        return naive(node[name], chosen)

    def children() -> list[bool]:
        return [naive(each, chosen) for each in node["children"]]

    def place() -> tuple[int, int]:
        (now,) = chosen["risk"]
        return TASKS["risk"]["labels"].index(now), TASKS["risk"]["labels"].index(node["level"])

    match node["type"]:
        case "LabelRef":
            return node["label"] in chosen[node["task"]]
        case "Not":
            return not child("child")
        case "And":
            return all(children())
        case "Or":
            return any(children())
        case "ExactlyOneOf":
            return sum(children()) == 1
        case "Implies":
            return not child("cond") or child("then")
        case "Iff":
            return child("left") == child("right")
        case "Excludes":
            return not (child("left") and child("right"))
        case "AnySelected":
            return bool(chosen[node["task"]])
        case "Cardinality":
            most = node["maximum"]
            return node["minimum"] <= len(chosen[node["task"]]) <= (9 if most is None else most)
        case "MinLevel":
            return place()[0] >= place()[1]
        case "MaxLevel":
            return place()[0] <= place()[1]
        case "AtLevel":
            return place()[0] == place()[1]
        case kind:
            raise ValueError(kind)


def every() -> list[Chosen]:
    effects = list(TASKS["effects"]["labels"])
    subsets = [frozenset(each) for n in range(4) for each in itertools.combinations(effects, n)]
    return [
        {"intent": frozenset({intent}), "effects": some, "risk": frozenset({risk})}
        for intent, some, risk in itertools.product(
            TASKS["intent"]["labels"], subsets, TASKS["risk"]["labels"]
        )
    ]


def labels_of(chosen: Chosen) -> set[str]:
    (intent,), (risk,) = chosen["intent"], chosen["risk"]
    return {f"intent={intent}", f"risk={TASKS['risk']['labels'].index(risk)}"} | {
        f"effects.{each}" for each in chosen["effects"]
    }


literals = st.sampled_from(
    [ref(task, label) for task, spec in TASKS.items() for label in spec["labels"]]
    + [level(kind, name) for kind in ("MinLevel", "MaxLevel", "AtLevel") for name in ("low", "high")]
)
nodes: st.SearchStrategy[Any] = st.recursive(
    literals,
    lambda inner: st.one_of(
        inner.map(lambda each: {"type": "Not", "child": each}),
        st.tuples(st.sampled_from(["And", "Or"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda it: {"type": it[0], "children": it[1]}
        ),
        st.tuples(inner, inner).map(lambda it: {"type": "Implies", "cond": it[0], "then": it[1]}),
        st.tuples(st.sampled_from(["Iff", "Excludes"]), inner, inner).map(
            lambda it: {"type": it[0], "left": it[1], "right": it[2]}
        ),
    ),
    max_leaves=6,
)
constraints = st.one_of(
    nodes,
    st.lists(literals, min_size=2, max_size=3).map(lambda each: {"type": "ExactlyOneOf", "children": each}),
    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.just(3))).map(
        lambda it: {"type": "Cardinality", "task": "effects", "minimum": it[0], "maximum": it[1]}
    ),
    st.just({"type": "AnySelected", "task": "effects"}),
)


@settings(max_examples=400)
@given(constraints)
def test_the_rules_accept_exactly_what_the_constraint_allows(constraint: Any) -> None:
    try:
        policy = imported(constraint)
    except ImportRefusedError:
        return

    for chosen in every():
        assert (not violations(policy.rules, labels_of(chosen))) is naive(constraint, chosen), chosen


def test_questions_and_thresholds_come_along() -> None:
    policy = imported()

    assert policy.ids == ("intent", "effects.none", "effects.create", "effects.delete", "risk")
    assert policy.thresholds == {"effects.none": 0.4, "effects.create": 0.4, "effects.delete": 0.4}
    assert policy.question("intent").labels == ("read", "write", "delete")
    assert policy.question("risk").labels == ("0", "1", "2")
    assert policy.rules == ()


def test_what_a_rule_has_words_for_stays_one_rule() -> None:
    policy = imported(
        {"type": "Implies", "cond": ref("intent", "delete"), "then": ref("effects", "delete")},
        {"type": "Implies", "cond": ref("effects", "delete"), "then": level("MinLevel", "high")},
        {"type": "Cardinality", "task": "effects", "minimum": 0, "maximum": 2},
    )

    assert [rule.message for rule in policy.rules] == [
        "intent=delete requires effects.delete",
        "effects.delete requires risk=2",
        "at most two of effects.none, effects.create, effects.delete",
    ]


def test_bounds_and_a_default_are_rules() -> None:
    tasks = {"t": {"labels": ["bad", "worse", "fine"], "default": "fine", "max_labels": 2}}

    assert [rule.message for rule in imported(tasks=tasks).rules] == [
        "at least one of t.bad, t.worse, t.fine",
        "at most two of t.bad, t.worse, t.fine",
        "t.fine exactly when not t.bad and not t.worse",
    ]


@pytest.mark.parametrize(
    ("given_schema", "why"),
    [
        ({"version": 2}, "not a classification schema of version 3"),
        (schema(ref("intent", "copy")), "constraint 1: task intent has no label 'copy'"),
        (schema(ref("verb", "read")), "constraint 1: no task 'verb'"),
        (
            schema(
                {
                    "type": "Not",
                    "child": {"type": "Cardinality", "task": "effects", "minimum": 1, "maximum": None},
                }
            ),
            "constraint 1: Cardinality inside another constraint",
        ),
        (schema({"type": "MinLevel", "task": "intent", "level": "read"}), "takes no single level"),
    ],
)
def test_what_cannot_be_said_is_refused_by_its_place(given_schema: Any, why: str) -> None:
    with pytest.raises(ImportRefusedError, match=why):
        policy_document(given_schema, name="n", version="1")
