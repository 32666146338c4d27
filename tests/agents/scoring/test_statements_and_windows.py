"""What a bi-encoder's folder may ask for beside the plain contract: instructions that are read, and long texts."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.agents.scoring.scorer import ScorerError
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion

Tickets = Callable[[Iterable[Any]], list[Ticket]]
OPTIONS = {"card": None, "late": None}


def read_instructions(document: dict[str, Any]) -> None:
    document["template"]["statement"] = "{instructions} {option}"
    document["calibration"]["choice"]["weight"] = document["calibration"]["score"]["weight"] = 4.0


def chances(scorer: OnnxScorer, state: str, question: Question) -> dict[str, float]:
    (scores,) = scorer.score([Ticket(id="T", state=state)], {"q": question})
    answer: Any = scores.answers["q"]
    found: dict[str, float] = answer["probabilities"]
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ChoiceQuestion("angry", OPTIONS), ChoiceQuestion("calm calm calm", OPTIONS)),
        (ScoreQuestion("angry", ("card", "late")), ScoreQuestion("calm calm calm", ("card", "late"))),
    ],
)
def test_instructions_are_read_where_the_folder_has_statements(
    build: Callable[..., Path], one: Question, other: Question
) -> None:
    scorer = OnnxScorer.open(build(read_instructions))

    assert chances(scorer, "angry card", one) != chances(scorer, "angry card", other)


def test_instructions_change_nothing_where_it_has_none(tiny: OnnxScorer) -> None:
    asked = [ChoiceQuestion(text, OPTIONS) for text in ("angry", "calm calm calm", None)]

    assert len({str(chances(tiny, "angry card", question)) for question in asked}) == 1


def test_a_question_without_instructions_is_answered_by_its_options(build: Callable[..., Path]) -> None:
    scorer = OnnxScorer.open(build(read_instructions))

    found = chances(scorer, "late", ChoiceQuestion(None, OPTIONS))

    assert found["late"] > found["card"]


def test_a_question_that_asks_for_what_is_not_meant_is_answered_the_other_way_round(
    build: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build(read_instructions)
    plain = chances(OnnxScorer.open(folder), "late", ChoiceQuestion("angry", OPTIONS))
    scorer = OnnxScorer.open(folder)
    contract: Any = scorer._contract
    heard = contract._head.run

    # The tiny head knows no negation: this one answers every statement with no.
    monkeypatch.setattr(contract._head, "run", lambda **inputs: -heard(**inputs))
    turned = chances(scorer, "late", ChoiceQuestion("angry", OPTIONS))

    assert plain["late"] > plain["card"]
    assert turned["late"] < turned["card"]


def test_a_statement_with_a_place_that_nothing_fills_is_refused(build: Callable[..., Path]) -> None:
    with pytest.raises(ScorerError, match="statement"):
        OnnxScorer.open(build(lambda document: document["template"].update(statement="{nothing}")))


# windows of 16 tokens, of which 14 are the text's


def windowed(build: Callable[..., Path], windows: int) -> OnnxScorer:
    return OnnxScorer.open(build(lambda document: document["limits"].update(windows=windows)))


def test_what_stands_behind_the_first_window_is_read(build: Callable[..., Path], tickets: Tickets) -> None:
    scorer = windowed(build, 3)
    state = "card " * 14 + "late " * 14

    (scores,) = scorer.score(tickets([state]), {"late": NoulQuestion("late")})

    (first,) = scorer.score(tickets(["card " * 14]), {"late": NoulQuestion("late")})
    assert scores.truncated == frozenset()
    assert scores.input_tokens == 32
    found: Any = scores.answers["late"]
    alone: Any = first.answers["late"]
    assert found["noul"] > alone["noul"]


@pytest.mark.parametrize(
    ("words", "tokens", "is_cut"), [(14, 16, False), (15, 19, False), (42, 48, False), (43, 48, True)]
)
def test_what_no_window_holds_is_said(
    build: Callable[..., Path], tickets: Tickets, words: int, tokens: int, is_cut: bool
) -> None:
    (scores,) = windowed(build, 3).score(tickets(["card " * words]), {"q": NoulQuestion("card")})

    assert scores.input_tokens == tokens
    assert scores.truncated == ({"q"} if is_cut else frozenset())


def test_a_long_text_reads_the_same_beside_others(build: Callable[..., Path], tickets: Tickets) -> None:
    scorer = windowed(build, 3)
    states = ["card late " * 20, "angry", "card " * 15, "late angry " * 9]
    questions = {"q": NoulQuestion("late"), "w": NoulQuestion("angry")}

    together = [scores.answers for scores in scorer.score(tickets(states), questions)]

    for state, answers in zip(states, together, strict=True):
        (scores,) = scorer.score(tickets([state]), questions)
        for name in questions:
            one: Any = answers[name]
            other: Any = scores.answers[name]
            assert one["noul"] == pytest.approx(other["noul"], abs=1e-6)
