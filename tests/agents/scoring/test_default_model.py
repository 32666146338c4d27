"""The model that ships: what must hold for every batch, order and set of questions."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ticketgate.agents.scoring import Scorer, default_model_path, open_scorer
from ticketgate.agents.scoring.contracts.bi_encoder_head import BiEncoderHead
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.agents.scoring.scorer import TextCounts
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.strict import JsonValue

TOLERANCE = 1e-5

STATES: list[Any] = [
    "My card was charged twice. Please fix this today.",
    "hello",
    "",
    {"subject": "Login", "body": "The code never arrives on my phone.", "tries": 3},
    "Where is my parcel? ¿Dónde está? 荷物はどこですか 📦",
    "The app crashes whenever I open the settings page, and after the last update all my projects are gone. "
    * 4,
    "word " * 400,
    ["first line", "second line"],
]
QUESTIONS: dict[str, Question] = {
    "urgent": NoulQuestion("Does the customer request urgent action?"),
    "review": NoulQuestion("Does this ticket need review by a person?"),
    "auto_reply": NoulQuestion("Is an automatic reply appropriate for this ticket?"),
    "billing": NoulQuestion("Should this ticket go to billing?", when_true="payments, invoices"),
    "technical": NoulQuestion("Should this ticket go to technical support?"),
    "route": ChoiceQuestion("Which team?", {"billing": "payments", "technical": "bugs", "other": None}),
    "anger": ScoreQuestion("How angry is the customer?", ("calm", "annoyed", "furious")),
}


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return open_scorer("onnx")


@pytest.fixture(scope="module")
def alone(scorer: Scorer) -> dict[tuple[int, str], dict[str, float]]:
    """Every question about every state, each asked in a call of its own."""
    return {
        (place, name): numbers(scorer.score([Ticket(id="T", state=state)], {name: question})[0].answers[name])
        for place, state in enumerate(STATES)
        for name, question in QUESTIONS.items()
    }


def forget(scorer: Scorer) -> None:
    """Have it read anew what it read before: else all that is compared with a first answer is that answer."""
    assert isinstance(scorer, OnnxScorer)
    contract = scorer._contract
    assert isinstance(contract, BiEncoderHead)
    contract._tickets._kept.clear()


def numbers(answer: object) -> dict[str, float]:
    assert isinstance(answer, dict)
    return {"noul": answer["noul"]} if answer["type"] == "noul" else answer["probabilities"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batch=st.lists(st.integers(0, len(STATES) - 1), min_size=1, max_size=24),
    asked=st.lists(st.sampled_from(sorted(QUESTIONS)), min_size=1, unique=True),
)
def test_an_answer_depends_on_its_ticket_and_its_question_alone(
    scorer: Scorer, alone: dict[tuple[int, str], dict[str, float]], batch: list[int], asked: list[str]
) -> None:
    tickets = [Ticket(id=f"T-{i}", state=STATES[place]) for i, place in enumerate(batch)]

    forget(scorer)

    together = scorer.score(tickets, {name: QUESTIONS[name] for name in asked})

    for place, scores in zip(batch, together, strict=True):
        assert list(scores.answers) == asked
        for name in asked:
            assert numbers(scores.answers[name]) == pytest.approx(alone[place, name], abs=TOLERANCE)


def test_several_threads_get_the_same_answers(
    scorer: Scorer, alone: dict[tuple[int, str], dict[str, float]]
) -> None:
    tickets = [Ticket(id=f"T-{i}", state=state) for i, state in enumerate(STATES)]

    with ThreadPoolExecutor(4) as pool:
        rounds = list(pool.map(lambda _: answers_of(scorer, tickets), range(12)))

    for answers in rounds:
        for (place, name), expected in alone.items():
            assert numbers(answers[place][name]) == pytest.approx(expected, abs=TOLERANCE)


def answers_of(scorer: Scorer, tickets: list[Ticket]) -> list[dict[str, object]]:
    forget(scorer)
    return [dict(scores.answers) for scores in scorer.score(tickets, QUESTIONS)]


def test_a_text_that_comes_again_is_not_read_again_and_answered_the_same(scorer: Scorer) -> None:
    assert isinstance(scorer, OnnxScorer)
    forget(scorer)
    first = scorer.score([Ticket(id="1", state=state) for state in STATES], QUESTIONS)
    before = scorer.text_counts

    again = scorer.score([Ticket(id="2", state=state) for state in reversed(STATES)], QUESTIONS)

    assert [*reversed(again)] == [*first]
    assert scorer.text_counts.since(before) == TextCounts(repeated=len(STATES), read=0)


def test_its_answers_pass_the_gate(scorer: Scorer) -> None:
    for state in STATES:
        (scores,) = scorer.score([Ticket(id="T", state=state)], QUESTIONS)

        assert isinstance(check_answers(QUESTIONS, scores.answers), dict)


def test_what_it_did_not_read_is_reported(scorer: Scorer) -> None:
    beyond, long, short = scorer.score(
        [Ticket(id=str(words), state="word " * words) for words in (2100, 2000, 200)], QUESTIONS
    )

    assert beyond.truncated == QUESTIONS.keys()
    assert beyond.input_tokens == 8 * 256
    assert long.truncated == short.truncated == frozenset()
    assert long.input_tokens == 2000 + 8 * 2
    assert short.input_tokens == 202


def test_what_takes_an_urgency_back_lowers_it(scorer: Scorer) -> None:
    crash = "The app crashes every time I open it."

    plain, calm, pressing = (
        numbers(scores.answers["urgent"])["noul"]
        for scores in scorer.score(
            [
                Ticket(id=str(place), state=f"{crash} {turn}")
                for place, turn in enumerate(("", "No hurry.", "Fix it at once, please."))
            ],
            QUESTIONS,
        )
    )

    assert calm < 0.5 < plain < pressing


def test_a_choice_reads_which_way_round_it_asks(scorer: Scorer) -> None:
    options: dict[str, JsonValue] = dict.fromkeys(("refund", "delivery", "login"))
    questions = {
        "is": ChoiceQuestion("Which is it?", options),
        "not": ChoiceQuestion("Which is it not?", options),
    }

    (scores,) = scorer.score([Ticket(id="T", state="Give me my money back.")], questions)

    is_it, is_not = (numbers(scores.answers[name])["refund"] for name in questions)
    assert is_it > 0.5 > is_not


def test_a_score_reads_what_it_grades(scorer: Scorer) -> None:
    levels = ("low", "rather low", "medium", "rather high", "high")
    questions = {"urgency": ScoreQuestion("How urgent is it?", levels)}

    urgent, calm = (
        _mean(scores.answers["urgency"])
        for scores in scorer.score(
            [
                Ticket(id="U", state="extremely urgent, we lose money every minute"),
                Ticket(id="C", state="no hurry"),
            ],
            questions,
        )
    )

    assert urgent > calm + 1


def _mean(answer: object) -> float:
    assert isinstance(answer, dict)
    return float(answer["score"])


def test_it_tells_the_plain_cases_apart(scorer: Scorer) -> None:
    """Not a measure of quality (deploy/model/README.md is), but a swapped file would fail here."""
    tickets = [
        Ticket(id="twice", state="My card was charged twice. Please fix this today."),
        Ticket(id="export", state="How do I export a list as a spreadsheet?"),
    ]

    twice, export = (
        {name: numbers(answer).get("noul", 0) for name, answer in scores.answers.items()}
        for scores in scorer.score(tickets, QUESTIONS)
    )

    assert twice["billing"] > 0.5 > twice["technical"]
    assert export["technical"] > export["billing"] < 0.5
    assert twice["urgent"] > 0.5 > export["urgent"]


def test_the_folder_is_small_enough_to_ship_and_says_where_it_comes_from() -> None:
    folder = default_model_path()
    manifest = json.loads((folder / "manifest.json").read_text())

    assert sum(file.stat().st_size for file in folder.iterdir()) <= 35_000_000
    assert manifest["about"]["licence"] == "Apache-2.0; the encoder MIT"
    assert "session" not in manifest
    assert {"LICENSE", "NOTICE"} <= {file.name for file in folder.iterdir()}


def test_no_engine_is_imported_before_a_model_is_opened() -> None:
    code = (
        "import sys, ticketgate.agents.scoring\n"
        "print([m for m in ('onnxruntime', 'tokenizers', 'numpy') if m in sys.modules])"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("state", "is_read"),
    [
        ("Thanks, it works now 👍", True),
        ("Где моя посылка? Я заплатил дважды.", True),  # letter by letter, if hardly understood
        ("ลูกค้าต้องการเงินคืน", False),
        ("请问我的包裹在哪里,我付了两次钱", False),
        ("Please look at this: " + "QUJD" * 60, False),
        ("Please look at this order number: 4711. " * 6 + "QUJD" * 8, True),
        ("", True),
    ],
)
def test_a_text_of_which_too_much_is_unknown_counts_as_not_read(
    scorer: Scorer, state: str, is_read: bool
) -> None:
    (scores,) = scorer.score([Ticket(id="T", state=state)], QUESTIONS)

    assert scores.truncated == (frozenset() if is_read else QUESTIONS.keys())
