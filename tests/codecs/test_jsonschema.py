"""JSON Schema to questions and back: what is taken, what comes of it, and every refusal by its property's name."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.codecs.systemone.answers import ChoiceAnswer, NoulAnswer, ScoreAnswer
from ticketgate.codecs.systemone.jsonschema import SchemaError, answers_to_json, questions_from_json_schema
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, ScoreQuestion

SCHEMA: Any = {
    "type": "object",
    "title": "Triage",
    "properties": {
        "priority": {"type": "integer", "minimum": 1, "maximum": 3, "description": "How pressing is it?"},
        "escalate": {"type": "boolean", "title": "Must it be escalated?"},
        "team": {"enum": ["billing", "technical", 7, None, 1.5]},
        "agree": {"enum": [True, False]},
        "source": {"const": "mail"},
        "level": {"type": "number", "minimum": 4, "maximum": 4.0},
        "mood": {"anyOf": [{"type": "string", "enum": ["calm", "angry"]}, {"type": "null"}], "default": None},
        "tone": {"type": ["string", "null"], "enum": ["soft", "loud", None]},
    },
    "required": ["priority"],
    "additionalProperties": False,
}


def only(**schema: Any) -> Any:
    return {"type": "object", "properties": {"p": schema}}


def test_each_property_with_more_than_one_value_is_a_question() -> None:
    assert questions_from_json_schema(SCHEMA) == {
        "priority": ScoreQuestion("How pressing is it?", ("1", "2", "3"), values=(1, 2, 3)),
        "escalate": NoulQuestion("Must it be escalated?", values=(False, True)),
        "team": ChoiceQuestion(
            "team",
            dict.fromkeys(["billing", "technical", "7", "null", "1.5"]),
            values=("billing", "technical", 7, None, 1.5),
        ),
        "agree": NoulQuestion("agree", values=(False, True)),
        "mood": ChoiceQuestion("mood", {"calm": None, "angry": None}, values=("calm", "angry")),
        "tone": ChoiceQuestion("tone", {"soft": None, "loud": None}, values=("soft", "loud")),
    }


def test_answers_come_back_in_their_original_type() -> None:
    found = answers_to_json(
        {
            "mood": {"type": "choice", "choice": "angry", "probabilities": {"calm": 0.2, "angry": 0.8}},
            # The most probable level, not the expected one.
            "priority": ScoreAnswer(1.0, {"0": 0.4, "1": 0.2, "2": 0.4}),
            "escalate": NoulAnswer(0.5),
            "agree": {"type": "noul", "noul": 0.49996},
            "team": ChoiceAnswer("7", {"billing": 0, "technical": 0, "7": 1, "null": 0, "1.5": 0}),
        },
        SCHEMA,
    )

    assert found == {
        "priority": 1,
        "escalate": True,
        "team": 7,
        "agree": False,
        "source": "mail",
        "level": 4,
        "mood": "angry",
    }
    assert list(found) == ["priority", "escalate", "team", "agree", "source", "level", "mood"]


@pytest.mark.parametrize("place", range(5))
def test_each_label_gives_its_value_back(place: int) -> None:
    values = SCHEMA["properties"]["team"]["enum"]
    labels = ["billing", "technical", "7", "null", "1.5"]
    answer = ChoiceAnswer(labels[place], {label: float(n == place) for n, label in enumerate(labels)})

    (value,) = answers_to_json({"p": answer}, only(enum=values)).values()

    assert value == values[place]
    assert type(value) is type(values[place])


def test_one_admissible_value_needs_no_model() -> None:
    schema = {
        "type": "object",
        "properties": {
            "const": {"const": False},
            "enum": {"enum": ["x"]},
            "bounds": {"type": "integer", "minimum": -1, "maximum": -1},
            "null": {"const": None},
        },
    }

    assert questions_from_json_schema(schema) == {}
    assert answers_to_json({}, schema) == {"const": False, "enum": "x", "bounds": -1, "null": None}


REFUSED: list[tuple[Any, str]] = [
    (only(type="string"), "a free string has no finite set of values"),
    (only(type="array", items={"type": "boolean"}), "an array is not supported"),
    (only(type="object", properties={}), "a nested object is not supported"),
    (only(**{"$ref": "#/$defs/x"}), "$ref is not supported"),
    (only(), "needs a type, an enum or a const"),
    (only(type="null"), "type 'null' is not supported"),
    (only(type=["string", "integer"]), "one type beside null, not 2"),
    (only(type=["null"]), "one type beside null, not 0"),
    (only(anyOf=[{"type": "boolean"}, {"enum": ["a", "b"]}]), "one branch beside null, not 2"),
    (only(oneOf=[{"type": "null"}]), "one branch beside null, not 0"),
    (only(anyOf={}), "anyOf must be an array"),
    (only(anyOf=[True, {"type": "null"}]), "its schema must be an object"),
    (only(anyOf=[{"type": "boolean"}], enum=[True, False]), 'keyword "enum" is not supported here'),
    (only(allOf=[{"type": "boolean"}], type="boolean"), 'keyword "allOf" is not supported here'),
    (only(type="integer", minimum=1), "needs a maximum"),
    (only(type="integer", maximum=1), "needs a minimum"),
    (only(type="integer", minimum=1, maximum=0), "maximum 0 is less than minimum 1"),
    (only(type="integer", minimum=1, maximum=11), "has 11 levels, more than 10"),
    (only(type="number", minimum=0.5, maximum=2), "minimum must be a whole number"),
    (only(type="integer", minimum=True, maximum=2), "minimum must be a whole number"),
    (only(type="integer", minimum="1", maximum=2), "minimum must be a whole number"),
    (only(type="integer", minimum=1, maximum=3, multipleOf=2), 'keyword "multipleOf"'),
    (only(enum=[]), "enum must be an array of at least one value"),
    (only(enum="ab"), "enum must be an array of at least one value"),
    (only(enum=[1, "1"]), 'two values are both written "1"'),
    (only(enum=["a", "a"]), 'two values are both written "a"'),
    (only(enum=["", "a"]), "an empty text"),
    (only(enum=[float("nan"), 1]), "is NaN or infinite"),
    (only(const=2**70), "cannot be written as JSON"),
    (only(type="number", minimum=float("nan"), maximum=2), "minimum must be a whole number"),
    (only(type="number", minimum=float("-inf"), maximum=2), "minimum must be a whole number"),
    (only(enum=[["a"], "b"]), "not an array"),
    (only(enum=[{"a": 1}]), "not an object"),
    (only(enum=list(range(256))), "has 256 values, more than 255"),
    (only(enum=["a", 1], type="string"), "value 1 is not of its type string"),
    (only(enum=[True, 1], type="integer"), "value true is not of its type integer"),
    (only(enum=["a"], type="array"), "has no values that can be listed"),
    (only(const="c", enum=["a", "b"]), "const is no value of its enum"),
    (only(const=1, enum=[True, False]), "const is no value of its enum"),
    (only(enum=["a", "b"], pattern="a"), 'keyword "pattern"'),
    ({"type": "object", "properties": {"p": True}}, "its schema must be an object"),
    ({"type": "object", "properties": {"q": {"type": "boolean"}}, "required": ["p"]}, "is required"),
]


@pytest.mark.parametrize(("schema", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_everything_else_is_refused_by_the_propertys_name(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaError) as refused:
        questions_from_json_schema(schema)

    assert str(refused.value).startswith("properties.p: ")
    assert reason in str(refused.value)
    assert refused.value.name == "p"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ({}, 'must say type: "object"'),
        ({"type": "array"}, 'must say type: "object"'),
        ({"type": "object"}, "must have properties"),
        ({"type": "object", "properties": {}}, "must have properties"),
        ({"type": "object", "properties": []}, "must have properties"),
        (
            {"type": "object", "properties": {str(n): {"type": "boolean"} for n in range(33)}},
            "has 33 properties, more than 32",
        ),
        ({**only(type="boolean"), "allOf": []}, 'keyword "allOf" is not supported'),
        ({**only(type="boolean"), "required": "p"}, "required must be an array"),
    ],
)
def test_a_schema_that_is_none_of_ours_is_refused_as_a_whole(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaError) as refused:
        questions_from_json_schema(schema)

    assert str(refused.value).startswith("the schema: ")
    assert reason in str(refused.value)
    assert refused.value.name is None


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"p": {"type": "choice", "choice": "c", "probabilities": {"a": 1, "b": 0}}}, "none of the options"),
        ({"p": {"type": "noul", "noul": 1}}, 'type must be "choice"'),
        ({"p": NoulAnswer(1)}, "of another question"),
        ({"p": ChoiceAnswer("c", {"c": 1.0, "d": 0.0})}, "of another question"),
        ({"p": None}, "must be an object"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_the_propertys_name(answers: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason) as refused:
        answers_to_json(answers, only(enum=["a", "b"]))

    assert refused.value.name == "p"


def test_an_answer_to_no_property_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"^properties\.q: answered"):
        answers_to_json({"q": NoulAnswer(1)}, only(type="boolean"))


KEYWORDS = ["type", "properties", "enum", "const", "anyOf", "minimum", "maximum", "p"]
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["integer", "object"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYWORDS), inner),
)


@given(ANYTHING)
def test_any_schema_is_taken_or_refused(schema: Any) -> None:
    for tried in (schema, {"type": "object", "properties": {"p": schema}}):
        with contextlib.suppress(SchemaError):
            questions_from_json_schema(tried)
