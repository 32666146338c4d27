"""Tickets whose shortlists differ are scored together, and as each would be alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ticketgate.agents.scoring import session
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.question_reading import read_question
from ticketgate.codecs.systemone.questions import MAX_SHORTLISTED, ChoiceQuestion, NoulQuestion, Question

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


@pytest.mark.xfail(strict=True, reason="a ticket with a shortlist is scored by itself")
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


@pytest.mark.xfail(strict=True, reason="the cache forgets the first of 10,000 options before the last is read")
def test_the_options_of_the_largest_choices_are_read_once(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = OnnxScorer.open(build())
    questions: dict[str, Question] = {"desk": large(MAX_SHORTLISTED), "other": large(MAX_SHORTLISTED - 1)}
    scorer.score(tickets(64), questions)

    with counted_runs(monkeypatch) as again:
        scorer.score(tickets(8), questions)

    assert sum(again) <= 2 * 8
