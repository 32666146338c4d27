"""Questions are checked whole before they are asked; an error names the question and the offending part."""

from __future__ import annotations

from typing import Any

import pytest
from ticketgate.codecs import (
    ChoiceQuestion,
    NoulQuestion,
    QuestionError,
    ScoreQuestion,
    read_question,
    read_questions,
)


def test_the_protocols_own_request_is_read_in_its_order() -> None:
    questions = read_questions(
        {
            "urgent": {
                "type": "noul",
                "instructions": "Urgent?",
                "criteria": {"true": "asks for action today"},
            },
            "route": {
                "type": "choice",
                "instructions": ["Which team?"],
                "criteria": {"billing": {"about": "money"}, "other": None},
            },
            "anger": {
                "type": "score",
                "instructions": None,
                "criteria": ["calm", {"level": "annoyed"}, ["angry"]],
            },
        }
    )

    assert questions == {
        "urgent": NoulQuestion("Urgent?", when_true="asks for action today"),
        "route": ChoiceQuestion(["Which team?"], {"billing": {"about": "money"}, "other": None}),
        "anger": ScoreQuestion(None, ("calm", {"level": "annoyed"}, ["angry"])),
    }
    assert [question.labels for question in questions.values()] == [
        ("false", "true"),
        ("billing", "other"),
        ("0", "1", "2"),
    ]
    assert list(questions) == ["urgent", "route", "anger"]
    assert {
        name: read_question(name, question.to_json()) for name, question in questions.items()
    } == questions


@pytest.mark.parametrize(
    "question",
    [
        {"type": "noul", "instructions": "x"},
        {"type": "noul", "instructions": "x", "criteria": None},
        {"type": "noul", "instructions": {"task": "x"}, "criteria": {}},
        {"type": "noul", "criteria": {"false": "no"}},
        {"type": "noul", "criteria": {"false": None, "true": ["yes"]}},
        {"type": "choice", "criteria": {str(n): None for n in range(255)}},
        {"type": "choice", "criteria": {"a": None, "b": None}},
        {"type": "score", "criteria": ["x"] * 10},
        {"type": "score", "criteria": ["x"] * 2},
    ],
)
def test_what_the_protocol_allows_is_taken(question: dict[str, Any]) -> None:
    assert read_question("q", question).labels


def test_a_noul_is_false_then_true_whatever_its_criteria_say_first() -> None:
    question = read_question("q", {"type": "noul", "criteria": {"true": "a", "false": "b"}})

    assert question.labels == ("false", "true")


@pytest.mark.parametrize(
    ("question", "part", "reason"),
    [
        (5, None, "must be an object, not the number 5"),
        ({}, "type", "type must be noul, choice or score, not missing"),
        ({"type": None}, "type", "type must be noul, choice or score, not null"),
        ({"type": "text"}, "type", 'type must be noul, choice or score, not "text"'),
        (
            {"type": "noul", "instructions": 1},
            "instructions",
            "instructions must be text, an object, an array or null, not the number 1",
        ),
        ({"type": "noul", "instructions": "x", "treshold": 1}, "treshold", 'unknown field "treshold"'),
        (
            {"type": "noul"},
            "criteria",
            "a noul without instructions must describe true or false in its criteria",
        ),
        (
            {"type": "noul", "criteria": {"true": None}},
            "criteria",
            "a noul without instructions must describe true or false in its criteria",
        ),
        (
            {"type": "noul", "criteria": {"yes": "x"}},
            "criteria",
            'noul criteria must be an object of true and false alone, not with "yes"',
        ),
        (
            {"type": "noul", "criteria": []},
            "criteria",
            "noul criteria must be an object of true and false alone, not an array",
        ),
        (
            {"type": "noul", "criteria": {"true": 1}},
            "criteria",
            "noul criteria true must be text, an object, an array or null, not the number 1",
        ),
        (
            {"type": "choice"},
            "criteria",
            "choice criteria must be an object from label to description, not null",
        ),
        (
            {"type": "choice", "criteria": ["a", "b"]},
            "criteria",
            "choice criteria must be an object from label to description, not an array",
        ),
        (
            {"type": "choice", "criteria": {"a": None}},
            "criteria",
            "choice criteria must have 2 to 255 options, not 1",
        ),
        (
            {"type": "choice", "criteria": {str(n): None for n in range(256)}},
            "criteria",
            "choice criteria must have 2 to 255 options, not 256",
        ),
        (
            {"type": "choice", "criteria": {"a": None, "": None}},
            "criteria",
            "a choice's label must be text that is not empty, not empty text",
        ),
        (
            {"type": "choice", "criteria": {"a": None, "b": 2}},
            "criteria",
            'the description of option "b" must be text, an object, an array or null, not the number 2',
        ),
        (
            {"type": "score", "criteria": {"0": "a", "1": "b"}},
            "criteria",
            "score criteria must be an array of descriptions, the lowest level first, not an object",
        ),
        ({"type": "score", "criteria": ["a"]}, "criteria", "score criteria must have 2 to 10 levels, not 1"),
        (
            {"type": "score", "criteria": ["a"] * 11},
            "criteria",
            "score criteria must have 2 to 10 levels, not 11",
        ),
        (
            {"type": "score", "criteria": ["a", None]},
            "criteria",
            "the description of level 1 must be text, an object or an array, not null",
        ),
    ],
)
def test_a_wrong_question_is_named_with_the_part_that_is_wrong(
    question: Any, part: str | None, reason: str
) -> None:
    with pytest.raises(QuestionError) as caught:
        read_questions({"good": {"type": "noul", "instructions": "x"}, "q 1": question})

    assert (caught.value.question_id, caught.value.part, caught.value.reason) == ("q 1", part, reason)
    assert str(caught.value) == f'question "q 1": {reason}'


@pytest.mark.parametrize("value", [None, [], "x", {}, {"": {"type": "noul", "instructions": "x"}}])
def test_questions_must_be_a_filled_object_with_ids(value: Any) -> None:
    with pytest.raises(QuestionError, match="question"):
        read_questions(value)


def test_the_endpoint_ignores_fields_that_a_policy_refuses() -> None:
    question = {"type": "noul", "instructions": "x", "x_extra": 1}

    assert read_question("q", question, unknown_fields="ignore") == NoulQuestion("x")
    with pytest.raises(QuestionError, match="x_extra"):
        read_question("q", question)
