"""The contract bi-encoder-head on a model whose answers can be worked out by hand."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion

Tickets = Callable[[Iterable[Any]], list[Ticket]]


def noul(scorer: OnnxScorer, state: Any, question: NoulQuestion) -> float:
    (scores,) = scorer.score([Ticket(id="T", state=state)], {"q": question})
    answer = scores.answers["q"]
    assert isinstance(answer, dict)
    return float(answer["noul"])


def test_a_noul_is_the_calibrated_logit(tiny: OnnxScorer) -> None:
    # Each text is [CLS] word [SEP]: the vectors share three thirds, so the dot product is 3 * 1/9.
    expected = 1 / (1 + math.exp(-(8.0 * 3 / 9 - 2.0)))

    assert noul(tiny, "card", NoulQuestion("card")) == pytest.approx(expected, abs=1e-6)


def test_more_in_common_is_more_probable(tiny: OnnxScorer) -> None:
    assert noul(tiny, "card late", NoulQuestion("card")) > noul(tiny, "angry late", NoulQuestion("card"))


def test_criteria_are_part_of_the_question(tiny: OnnxScorer) -> None:
    with_criteria = noul(tiny, "angry", NoulQuestion("card", when_true="angry"))

    assert with_criteria == noul(tiny, "angry", NoulQuestion("card angry"))
    assert noul(tiny, "angry", NoulQuestion(None, when_false="angry")) == noul(
        tiny, "angry", NoulQuestion("angry")
    )


def test_braces_in_a_text_are_text(tiny: OnnxScorer) -> None:
    assert 0 < noul(tiny, "{state} {instructions} {x}", NoulQuestion("{label}")) < 1


def test_a_structured_state_reads_as_its_lines(tiny: OnnxScorer) -> None:
    assert noul(tiny, ["card", ["late"]], NoulQuestion("card")) == noul(
        tiny, "card\nlate", NoulQuestion("card")
    )


def test_choice_and_score_hold_as_answers(tiny: OnnxScorer) -> None:
    questions: dict[str, Question] = {
        "kind": ChoiceQuestion("Which?", {"card": None, "late": "angry", "calm": None}),
        "mood": ScoreQuestion("How angry?", ("calm", {"word": "late"}, "angry")),
    }

    (scores,) = tiny.score([Ticket(id="T", state="angry card")], questions)

    answers = check_answers(questions, scores.answers)
    assert isinstance(answers, dict), answers
    assert list(answers) == ["kind", "mood"]


def test_of_equal_options_the_earlier_is_chosen(tiny: OnnxScorer) -> None:
    questions = {"kind": ChoiceQuestion(None, {"late": None, "angry": None})}

    (scores,) = tiny.score([Ticket(id="T", state="card")], questions)

    answer = scores.answers["kind"]
    assert isinstance(answer, dict)
    assert answer["choice"] == "late"
    assert answer["confidence"] == pytest.approx(0)


def test_a_long_ticket_is_truncated_for_every_question(tiny: OnnxScorer, tickets: Tickets) -> None:
    questions = {"a": NoulQuestion("card"), "b": NoulQuestion("late")}

    long, fits, short = tiny.score(tickets(["card " * 15, "card " * 14, "card"]), questions)

    assert long.truncated == {"a", "b"}
    assert long.input_tokens == 16
    assert fits.truncated == frozenset()
    assert fits.input_tokens == 16
    assert short.input_tokens == 3


def test_a_long_question_is_truncated_alone(tiny: OnnxScorer, tickets: Tickets) -> None:
    questions: dict[str, Question] = {
        "long": NoulQuestion("card " * 50),
        "option": ChoiceQuestion(None, {"card": None, "late": "late " * 50}),
        "short": NoulQuestion("card"),
    }

    (scores,) = tiny.score(tickets(["card"]), questions)

    assert scores.truncated == {"long", "option"}


def test_what_is_cut_off_is_the_end_of_the_text_and_not_the_closing_token(tiny: OnnxScorer) -> None:
    cut = noul(tiny, "card " * 14 + "late " * 40, NoulQuestion("card"))

    assert cut == noul(tiny, "card " * 14, NoulQuestion("card"))


def test_nothing_in_nothing_out(tiny: OnnxScorer, tickets: Tickets) -> None:
    assert tuple(tiny.score([], {"q": NoulQuestion("card")})) == ()
    assert [s.answers for s in tiny.score(tickets(["card", "late"]), {})] == [{}, {}]


def test_a_state_without_a_word_still_gets_an_answer(tiny: OnnxScorer) -> None:
    assert 0 < noul(tiny, "", NoulQuestion("card")) < 1


def test_more_pairs_than_the_head_takes_at_once(tiny: OnnxScorer, tickets: Tickets) -> None:
    questions = {str(i): NoulQuestion("card late"[: 4 if i % 2 else 9]) for i in range(5000)}

    together = tiny.score(tickets(["card", "late"]), questions)

    (alone,) = tiny.score(tickets(["late"]), {"1": questions["1"], "4998": questions["4998"]})
    assert together[1].answers["1"] == alone.answers["1"]
    assert together[1].answers["4998"] == alone.answers["4998"]


def test_answers_are_plain_json(build: Callable[..., Path], tickets: Tickets) -> None:
    scorer = OnnxScorer.open(build(), threads=2)

    (scores,) = scorer.score(tickets(["card"]), {"q": NoulQuestion("card")})

    answer = scores.answers["q"]
    assert isinstance(answer, dict)
    assert type(answer["noul"]) is float


def test_no_threads_are_refused(build: Callable[..., Path]) -> None:
    with pytest.raises(ValueError, match="at least one thread"):
        OnnxScorer.open(build(), threads=0)
