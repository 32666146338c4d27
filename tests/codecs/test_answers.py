"""Answers from outside are checked whole; what is contradictory or missing is never decided on."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.codecs import (
    Answer,
    ChoiceAnswer,
    ChoiceQuestion,
    NoulAnswer,
    NoulQuestion,
    Question,
    ScoreAnswer,
    ScoreQuestion,
    answer_confidence,
    answer_json,
    certainty,
    check_answers,
    confidence,
    encode,
    tag_non_finite,
)

from ..support import examples

URGENT = NoulQuestion("Urgent?")
ROUTE = ChoiceQuestion("Which team?", {"billing": None, "technical": None, "other": None})
ANGER = ScoreQuestion("How angry?", ("calm", "annoyed", "angry"))
QUESTIONS: dict[str, Question] = {"urgent": URGENT, "route": ROUTE, "anger": ANGER}


def route(choice: Any = "billing", *, drop: str = "", **fields: Any) -> dict[str, Any]:
    answer = {
        "type": "choice",
        "choice": choice,
        "confidence": 0.9019,
        "probabilities": {"billing": 0.9346, "technical": 0.0049, "other": 0.0605},
    } | fields
    return {name: value for name, value in answer.items() if name != drop}


def anger(score: Any = 1.12, *, drop: str = "", **fields: Any) -> dict[str, Any]:
    answer = {
        "type": "score",
        "score": score,
        "confidence": 0.61,
        "legend": {"0": "calm", "1": "annoyed", "2": "angry"},
        "probabilities": {"0": 0.14, "1": 0.60, "2": 0.26},
    } | fields
    return {name: value for name, value in answer.items() if name != drop}


def answered(question: Question, raw: object) -> Answer:
    result = check_answers({"q": question}, {"q": raw})
    assert isinstance(result, dict), result
    return result["q"]


def reasons(question: Question, raw: object) -> tuple[str, ...]:
    result = check_answers({"q": question}, {"q": raw})
    assert isinstance(result, tuple), result
    return result


def test_the_protocols_own_response_is_taken_as_it_came() -> None:
    raw = {"anger": anger(), "urgent": {"type": "noul", "noul": 0.93}, "route": route()}

    result = check_answers(QUESTIONS, raw)

    assert result == {
        "urgent": NoulAnswer(0.93),
        "route": ChoiceAnswer("billing", {"billing": 0.9346, "technical": 0.0049, "other": 0.0605}),
        "anger": ScoreAnswer(1.12, {"0": 0.14, "1": 0.60, "2": 0.26}),
    }
    assert list(result) == ["urgent", "route", "anger"]


@pytest.mark.parametrize("number", [0, 1, 0.0, 1.0, -0.0, 0.49995, 5e-324])
def test_a_probability_is_kept_as_it_came(number: float) -> None:
    answer = answered(URGENT, {"type": "noul", "noul": number})

    assert isinstance(answer, NoulAnswer)
    assert repr(answer.noul) == repr(number)


def test_a_number_of_a_librarys_own_type_becomes_a_plain_one() -> None:
    class LikeNumpy(float):
        __slots__ = ()

    answer = answered(URGENT, {"type": "noul", "noul": LikeNumpy(0.25)})

    assert isinstance(answer, NoulAnswer)
    assert type(answer.noul) is float
    assert encode(tag_non_finite({"noul": LikeNumpy(0.25)})) == b'{"noul":0.25}'


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"type": "noul", "noul": True}, "noul must be a number from 0 to 1, not true"),
        ({"type": "noul", "noul": "0.5"}, "noul must be a number from 0 to 1, not text"),
        ({"type": "noul", "noul": None}, "noul must be a number from 0 to 1, not null"),
        ({"type": "noul"}, "noul must be a number from 0 to 1, not null"),
        ({"type": "noul", "noul": 1.0000001}, "noul must be from 0 to 1, not 1.0000001"),
        ({"type": "noul", "noul": -0.01}, "noul must be from 0 to 1, not -0.01"),
        ({"type": "noul", "noul": 2}, "noul must be from 0 to 1, not the number 2"),
        ({"type": "noul", "noul": math.nan}, "noul must be from 0 to 1, not NaN"),
        ({"type": "noul", "noul": math.inf}, "noul must be from 0 to 1, not Infinity"),
        ({"type": "noul", "noul": 10**5000}, "noul must be from 0 to 1, not a number beyond 64 bits"),
        ({"noul": 0.5}, 'type must be "noul", not missing'),
        ({"type": "choice", "choice": "a"}, 'type must be "noul", not "choice"'),
        ({"type": ["noul"]}, 'type must be "noul", not an array'),
        (None, "the answer must be an object, not null"),
        (0.5, "the answer must be an object, not the number 0.5"),
    ],
)
def test_a_wrong_noul_is_refused(raw: object, reason: str) -> None:
    assert reasons(URGENT, raw) == (f'question "q": {reason}',)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (route("sales"), 'choice "sales" is none of the options'),
        (route(None), "choice must be one of the options, not null"),
        (route("other"), 'choice "other" (0.0605) is less probable than "billing" (0.9346)'),
        (route(drop="choice"), "choice must be one of the options, not null"),
        (route(drop="probabilities"), "probabilities must be an object, not null"),
        (route(probabilities=[1, 0, 0]), "probabilities must be an object, not an array"),
        (route(probabilities={"billing": 0.9, "technical": 0.1}), 'no probability for option "other"'),
        (
            route(probabilities={"billing": 1, "technical": 0, "other": 0, "sales": 0}),
            'a probability for "sales", which is no option',
        ),
        (
            route(probabilities={"billing": 1, "technical": False, "other": 0}),
            'the probability of "technical" must be a number from 0 to 1, not false',
        ),
        (
            route(probabilities={"billing": 0.9, "technical": 0.05, "other": 0.04}),
            "probabilities sum to 0.99, not 1",
        ),
        (route(probabilities={"billing": 1, "technical": 1, "other": 1}), "probabilities sum to 3.0, not 1"),
        (route(confidence=1.5), "confidence must be from 0 to 1, not 1.5"),
        (route(confidence=None), "confidence must be a number from 0 to 1, not null"),
    ],
)
def test_a_wrong_choice_is_refused(raw: object, reason: str) -> None:
    assert reasons(ROUTE, raw) == (f'question "q": {reason}',)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (anger(1), "score 1 is not the expectation of its probabilities, 1.12"),
        (anger(2.5), "score must be from 0 to 2, not 2.5"),
        (anger("1.12"), "score must be a number from 0 to 2, not text"),
        (anger(drop="score"), "score must be a number from 0 to 2, not null"),
        (anger(probabilities={"0": 0.4, "1": 0.6}), 'no probability for level "2"'),
        (anger(legend={"0": "calm", "1": "angry", "2": "annoyed"}), "legend is not that of the levels asked"),
        (anger(confidence=math.nan), "confidence must be from 0 to 1, not NaN"),
    ],
)
def test_a_wrong_score_is_refused(raw: object, reason: str) -> None:
    assert reasons(ANGER, raw) == (f'question "q": {reason}',)


def test_a_servers_own_confidence_and_legend_may_be_left_out() -> None:
    assert answered(ROUTE, route(drop="confidence"))
    assert answered(ANGER, anger(drop="legend"))


def test_numbers_rounded_as_servers_round_them_are_taken() -> None:
    thirds = {"billing": 0.3333, "technical": 0.3333, "other": 0.3333}
    assert answered(ROUTE, route(probabilities=thirds))
    assert answered(
        ANGER, anger(1.0, probabilities={"0": 0.3333, "1": 0.3333, "2": 0.3333}, drop="confidence")
    )

    options = {str(n): None for n in range(255)}
    rounded = dict.fromkeys(options, 0.0039)  # 1/255 = 0.00392: the sum is 0.9945
    many = ChoiceQuestion("?", dict(options))
    assert answered(many, {"type": "choice", "choice": "7", "probabilities": rounded})


def test_equal_highest_probabilities_allow_either_and_the_mode_is_the_earlier() -> None:
    answer = answered(ROUTE, route("other", probabilities={"other": 0.5, "billing": 0.5, "technical": 0}))

    assert isinstance(answer, ChoiceAnswer)
    assert answer.choice == "other"
    assert answer.mode == "billing"
    assert answered(ANGER, anger(1.0, probabilities={"0": 0.5, "1": 0, "2": 0.5})) == ScoreAnswer(
        1.0, {"0": 0.5, "1": 0, "2": 0.5}
    )


def test_missing_and_unasked_ids_are_named_in_the_questions_order() -> None:
    raw = {"extra": {"type": "noul", "noul": 0.1}, "anger": anger(9), "urgent": {"type": "noul", "noul": 0.1}}

    assert check_answers(QUESTIONS, raw) == (
        'question "route": no answer',
        'question "anger": score must be from 0 to 2, not the number 9',
        'question "extra": answered but not asked',
    )


def test_no_answers_at_all_are_refused() -> None:
    assert check_answers({"urgent": URGENT}, {}) == ('question "urgent": no answer',)
    assert check_answers({"urgent": URGENT}, None) == (
        "answers must be an object from question id to answer, not null",
    )


def test_ten_thousand_unasked_ids_give_few_reasons() -> None:
    raw = {"urgent": {"type": "noul", "noul": 0.1}} | {f"x{n}": 0 for n in range(10_000)}

    result = check_answers({"urgent": URGENT}, raw)

    assert len(result) == 17
    assert isinstance(result, tuple)
    assert result[-1] == "9984 more answered but not asked"


@examples.some
@given(examples.values | st.dictionaries(st.sampled_from([*QUESTIONS, "x"]), examples.values))
def test_checking_is_total(raw: object) -> None:
    result = check_answers(QUESTIONS, raw)

    assert isinstance(result, tuple)
    assert result


@examples.some
@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda chances: sum(chances) > 0))
def test_a_distribution_is_taken_and_its_own_wire_form_too(weights: list[float]) -> None:
    chances = [weight / sum(weights) for weight in weights]
    labels = ["billing", "technical", "other"]
    levels = {str(level): p for level, p in enumerate(chances)}
    choice = answered(
        ROUTE,
        route(labels[chances.index(max(chances))], probabilities=dict(zip(labels, chances, strict=True))),
    )
    score = answered(ANGER, anger(min(2.0, chances[1] + 2 * chances[2]), probabilities=levels))

    for question, answer in ((ROUTE, choice), (ANGER, score)):
        wire = json.loads(encode(answer_json(question, answer)))
        assert answered(question, wire) == answer
        assert 0 <= wire["confidence"] <= 1
        assert wire["x_answer_confidence"] == max(chances)
        assert wire["x_certainty"] == certainty(answer)


def test_confidence_follows_the_protocols_formulas() -> None:
    route_answer, anger_answer = answered(ROUTE, route()), answered(ANGER, anger())

    assert confidence(NoulAnswer(0.9)) is None
    assert confidence(route_answer) == pytest.approx(0.9019)
    # The mode is 1, so E|i - mode| = 0.14 + 0.26; the uniform spread around the middle is 2/3.
    assert confidence(anger_answer) == pytest.approx(1 - 0.40 / (2 / 3))
    assert confidence(ChoiceAnswer("a", {"a": 0.52, "b": 0.48, "c": 0})) == pytest.approx(0.28)
    assert confidence(ScoreAnswer(1.0, {"0": 0.5, "1": 0, "2": 0.5})) == 0
    assert confidence(ScoreAnswer(0, {"0": 1, "1": 0})) == 1
    assert confidence(ChoiceAnswer("a", {"a": 0.3333, "b": 0.3333, "c": 0.3333})) == 0


@pytest.mark.parametrize(
    ("answer", "threshold", "expected"),
    [
        (NoulAnswer(0.9), 0.5, 0.9),
        (NoulAnswer(0.25), 0.5, 0.75),
        (NoulAnswer(0.5), 0.5, 0.5),
        (NoulAnswer(0.625), 0.75, 0.375),  # below its threshold false is selected, though true is likelier
        (NoulAnswer(0.25), 0.25, 0.25),
        (NoulAnswer(1), 0.5, 1),
        (ChoiceAnswer("b", {"a": 0.25, "b": 0.75}), 0.9, 0.75),
        (ScoreAnswer(0.8, {"0": 0.5, "1": 0.2, "2": 0.3}), 0.9, 0.5),
    ],
)
def test_answer_confidence_is_the_probability_of_what_is_reported(
    answer: Answer, threshold: float, expected: float
) -> None:
    assert answer_confidence(answer, threshold) == expected


def test_an_answer_of_another_kind_has_no_wire_form() -> None:
    with pytest.raises(ValueError, match="noul to a question of type choice"):
        answer_json(ROUTE, NoulAnswer(0.5))


def test_raw_answers_become_writable_and_never_null() -> None:
    class Odd:
        def __repr__(self) -> str:
            return "Odd()"

    raw = {
        "a": math.nan,
        "b": [math.inf, -math.inf, (1, 0.5, -0.0)],
        3: 2**70,
        "c": Odd(),
        "d": "\ud83d",
        "e": 10**5000,
    }

    tagged = tag_non_finite(raw)

    assert tagged == {
        "a": "NaN",
        "b": ["Infinity", "-Infinity", [1, 0.5, -0.0]],
        "3": "1180591620717411303424",
        "c": "Odd()",
        "d": "\ufffd",
        "e": "an integer of 16610 bits",
    }
    assert json.loads(encode(tagged)) == tagged


def test_raw_answers_that_hold_themselves_end() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert encode(tag_non_finite({"a": loop})).count(b"[") < 64


@examples.some
@given(examples.values)
def test_what_json_can_carry_is_tagged_as_itself(value: object) -> None:
    assert repr(tag_non_finite(value)) == repr(value)


@pytest.mark.parametrize(
    ("chances", "of_distribution"),
    [((0.52, 0.48, 0.0), 0.37), ((0.52, 0.24, 0.24), 0.07), ((1.0, 0.0, 0.0), 1.0)],
)
def test_certainty_tells_apart_what_confidence_cannot(
    chances: tuple[float, ...], of_distribution: float
) -> None:
    answer = ChoiceAnswer("a", dict(zip("abc", chances, strict=True)))

    assert certainty(answer) == pytest.approx(of_distribution, abs=0.005)
    assert confidence(answer) == (pytest.approx(0.28) if chances[0] < 1 else 1)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9).filter(lambda each: sum(each) > 0.1))
def test_certainty_is_a_share(weights: list[float]) -> None:
    answer = ScoreAnswer(0.0, {str(n): each / sum(weights) for n, each in enumerate(weights)})

    assert 0 <= certainty(answer) <= 1
