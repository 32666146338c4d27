"""Tickets whose shortlists differ are scored together, and as each would be alone."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ticketgate.agents.scoring import Scorer, Scores, open_scorer, session
from ticketgate.agents.scoring.contracts import score_each
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.agents.scoring.scorer import TextCounts
from ticketgate.agents.scoring.shortlisting import Shortlister, score_shortlisted
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.question_reading import read_question
from ticketgate.codecs.systemone.questions import MAX_SHORTLISTED, ChoiceQuestion, NoulQuestion, Question

from . import test_joint_contracts
from .conftest import Build

WORDS = ["card", "late", "angry", "calm"]


def large(options: int, *, k: int = 2, instructions: str | None = None) -> ChoiceQuestion:
    """A choice of so many options, each of a word that the tiny model knows and some that it does not."""
    criteria = {f"{WORDS[n % 4]} {WORDS[n // 4 % 4]} {n}": None for n in range(options)}
    made = read_question(
        "desk", {"type": "choice", "instructions": instructions, "criteria": criteria}, shortlist=k
    )
    assert isinstance(made, ChoiceQuestion)
    return made


def tickets(count: int) -> list[Ticket]:
    """Of different words, and of one length."""
    return [
        Ticket(id=f"T-{n}", state=f"{WORDS[n % 4]} {WORDS[n // 4 % 4]} {WORDS[n // 16 % 4]}")
        for n in range(count)
    ]


@contextmanager
def counted_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The rows that the encoder is given, run by run."""
    rows: list[int] = []
    run = session.GraphSession.run

    def counting(graph: session.GraphSession, **inputs: Any) -> Any:
        if "ids" in inputs:
            rows.append(len(inputs["ids"]))
        return run(graph, **inputs)

    with monkeypatch.context() as patch:
        patch.setattr(session.GraphSession, "run", counting)
        yield rows


@pytest.mark.parametrize("instructions", [None, "late"])
def test_many_tickets_take_no_more_runs_of_the_encoder_than_one(
    build: Build, monkeypatch: pytest.MonkeyPatch, instructions: str | None
) -> None:
    scorer = OnnxScorer.open(build())
    questions: dict[str, Question] = {
        "urgent": NoulQuestion("angry"),
        "desk": large(300, instructions=instructions),
    }
    scorer.score(tickets(64), questions)  # what a question says is read once

    with counted_runs(monkeypatch) as alone:
        scorer.score(tickets(1), questions)
    with counted_runs(monkeypatch) as together:
        scorer.score(tickets(64), questions)

    assert len(together) == len(alone)


@pytest.mark.parametrize(("instructions", "readings"), [(None, 1), ("late", 2)])
def test_a_ticket_is_read_once_and_again_only_with_what_is_asked(
    build: Build, monkeypatch: pytest.MonkeyPatch, instructions: str | None, readings: int
) -> None:
    scorer = OnnxScorer.open(build())
    questions: dict[str, Question] = {"desk": large(300, instructions=instructions)}
    scorer.score([Ticket(id="warm", state="calm")], questions)
    before = scorer.text_counts

    with counted_runs(monkeypatch) as rows:
        scorer.score(tickets(48), questions)

    # The others are options, which are read when they are first kept.
    assert rows.count(48) == readings
    assert scorer.text_counts.since(before) == TextCounts(repeated=0, read=48)


def test_the_options_of_the_largest_choices_are_read_once(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = OnnxScorer.open(build())
    questions: dict[str, Question] = {"desk": large(MAX_SHORTLISTED), "other": large(MAX_SHORTLISTED - 1)}
    scorer.score(tickets(64), questions)

    with counted_runs(monkeypatch) as again:
        scorer.score(tickets(8), questions)

    assert sum(again) <= 2 * 8


# --- what a ticket gets does not hang on its neighbours ---

STATES: list[Any] = [
    "Someone has stolen my card, please block it.",
    "The parcel is late, and nobody answers.",
    "I am angry about an invoice that is wrong.",
    "Please stay calm: the refund has come.",
    {"subject": "card", "text": "It was charged twice."},
    "late " * 400,
    "",
    "Wo bleibt mein Paket?",
]
POOL = [Ticket(id=f"P-{n}", state=state) for n, state in enumerate(STATES)]
MIXED: dict[str, Question] = {
    "urgent": NoulQuestion("Is it angry?"),
    "desk": large(40, k=5, instructions="Which desk takes it?"),
    "other": large(30, k=2),
    "few": ChoiceQuestion("Which is it?", {"card": None, "late": "It is late."}, shortlist=20),
    "plain": ChoiceQuestion(None, {"calm": None, "angry": None}),
}
CONTRACTS = ["default model", *test_joint_contracts.BUILDERS]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Scorer, list[Scores]]]:
    """A scorer by its contract, and what it says of each ticket of the pool by itself."""
    folder: Path = tmp_path_factory.mktemp("models")
    known: dict[str, tuple[Scorer, list[Scores]]] = {}

    def opened(name: str) -> tuple[Scorer, list[Scores]]:
        if name not in known:
            build = test_joint_contracts.BUILDERS.get(name)
            scorer = open_scorer("onnx", model=build(folder / name) if build else None)
            known[name] = scorer, [scorer.score([ticket], MIXED)[0] for ticket in POOL]
        return known[name]

    return opened


@pytest.mark.parametrize("contract", CONTRACTS)
@given(places=st.lists(st.integers(0, len(POOL) - 1), min_size=1, max_size=12))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_ticket_gets_in_any_company_what_it_gets_alone(
    alone: Callable[[str], tuple[Scorer, list[Scores]]], contract: str, places: list[int]
) -> None:
    scorer, singly = alone(contract)

    together = scorer.score([POOL[place] for place in places], MIXED)

    for place, found in zip(places, together, strict=True):
        expected = singly[place]
        assert list(found.answers) == list(MIXED) == list(expected.answers)
        assert_alike(dict(found.answers), dict(expected.answers))
        assert found.asked == expected.asked
        assert found.asked.keys() == {"desk", "other", "few"}
        assert (found.truncated, found.input_tokens) == (expected.truncated, expected.input_tokens)
        assert (found.failure, found.abstention) == (expected.failure, expected.abstention)


def assert_alike(found: Any, expected: Any) -> None:
    """The same, numbers to a millionth."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_alike(found[key], value)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-6)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    else:
        assert found == expected


# --- a shortlister by itself ---


class Embed:
    """An embedding function that notes what it was asked. A text's vector is its length beside 1."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return [[1.0, len(text)] for text in texts]


def test_a_questions_options_are_kept_as_long_as_it_lives() -> None:
    embed = Embed()
    shortlister = Shortlister(lambda: embed)
    question = large(8)
    first = shortlister.shortlists(tickets(2), {"desk": question})

    again = shortlister.shortlists(tickets(2), {"desk": question})
    del question
    gc.collect()
    anew = shortlister.shortlists(tickets(2), {"desk": large(9)})

    assert again == first
    assert [each["desk"].n for each in anew] == [9, 9]
    asked, options = [ticket.state for ticket in tickets(2)], list(large(9).labels)
    # Of one that is made anew the options are known by their texts.
    assert embed.asked == [asked, options[:8], asked, asked, options[8:]]


def test_lanes_that_begin_together_embed_the_options_once() -> None:
    both_began = threading.Barrier(2)
    calls: list[int] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if len(texts) == 1:  # a ticket's
            both_began.wait(30)
        else:
            calls.append(len(texts))
        return [[1.0, len(text)] for text in texts]

    shortlister, question = Shortlister(lambda: embed), large(8)
    with ThreadPoolExecutor(2) as lanes:
        found = list(
            lanes.map(lambda ticket: shortlister.shortlists([ticket], {"desk": question}), tickets(2))
        )

    assert calls == [8]
    assert [len(each[0]["desk"].labels) for each in found] == [2, 2]


def test_a_text_that_several_tickets_have_is_embedded_once() -> None:
    embed = Embed()

    Shortlister(lambda: embed).shortlists([*tickets(1), *tickets(1)], {"desk": large(8), "other": large(9)})

    assert embed.asked[0] == [tickets(1)[0].state]


def test_a_contract_that_cannot_ask_apart_is_asked_for_each_ticket() -> None:
    calls: list[tuple[int, tuple[str, ...]]] = []

    class Plain:
        def score(self, states: Sequence[Any], questions: Any) -> Sequence[Scores]:
            calls.append((len(states), tuple(questions["desk"].criteria)))
            return [Scores({"desk": {"type": "choice"}}) for _ in states]

    embed = Embed()

    found = score_shortlisted(
        lambda some, asked: score_each(Plain(), [each.state for each in some], asked),
        Shortlister(lambda: embed),
        tickets(3),
        {"desk": large(8)},
    )

    assert [count for count, _ in calls] == [1, 1, 1]
    assert [scores.asked["desk"].labels for scores in found] == [labels for _, labels in calls]
