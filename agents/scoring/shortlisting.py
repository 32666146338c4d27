"""A scorer's way around choices too large to ask whole: shortlist, then ask about the rest of them.

Promise: a question with `shortlist` is reduced for each ticket by itself, before the model sees it; its answer is over
the kept options, `Scores.asked` has the question as it was asked, and the answer's `x_shortlist` tells what was kept.
Other questions are asked of all tickets together, as ever.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ticketgate.agents.scoring.asked import SHORTLIST, reduced
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.agents.scoring.shortlist import (
    CachedEmbed,
    EmbedFn,
    Shortlist,
    cached_embed_fn,
    shortlist_choice,
)
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import ChoiceQuestion, Question

# Labels are asked for again with every ticket; 8,192 vectors of width 384 are 25 MB.
MOST_KEPT: Final = 8192

Score = Callable[[Sequence[Ticket], Mapping[str, Question]], Sequence[Scores]]


class LazyEmbed:
    """An embedding function, with a cache, that is made when it is first needed. For several threads at once."""

    def __init__(self, make: Callable[[], EmbedFn]) -> None:
        self._make = make
        self._embed: CachedEmbed | None = None
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """[texts, width]. Raises what making or embedding raises."""
        with self._lock:
            if self._embed is None:
                self._embed = cached_embed_fn(self._make(), MOST_KEPT)
        return self._embed(texts)


def score_shortlisted(
    score: Score, embed: EmbedFn, tickets: Sequence[Ticket], questions: Mapping[str, Question]
) -> Sequence[Scores]:
    """What `score` gives, with shortlists where the questions ask for them. Raises what both functions raise."""
    large = {
        name: question
        for name, question in questions.items()
        if isinstance(question, ChoiceQuestion) and question.shortlist is not None
    }
    if not large:
        return score(tickets, questions)
    others = {name: question for name, question in questions.items() if name not in large}
    found = score(tickets, others) if others else [Scores({}) for _ in tickets]
    return [
        _merged(questions, whole, *_reduced(score, embed, ticket, large))
        for ticket, whole in zip(tickets, found, strict=True)
    ]


def _reduced(
    score: Score, embed: EmbedFn, ticket: Ticket, large: Mapping[str, ChoiceQuestion]
) -> tuple[Scores, dict[str, Question], dict[str, Shortlist]]:
    shortlists = {
        name: shortlist_choice(
            ticket.state, question.criteria, embed, question.shortlist or 0, question.instructions
        )
        for name, question in large.items()
    }
    asked: dict[str, Question] = {
        name: reduced(large[name], kept.labels) or large[name] for name, kept in shortlists.items()
    }
    (scores,) = score([ticket], asked)
    return scores, asked, shortlists


def _merged(
    questions: Mapping[str, Question],
    whole: Scores,
    part: Scores,
    asked: Mapping[str, Question],
    shortlists: Mapping[str, Shortlist],
) -> Scores:
    answers = {**whole.answers, **part.answers}
    for name, shortlist in shortlists.items():
        if isinstance(answer := answers.get(name), dict):
            answers[name] = {**answer, SHORTLIST: shortlist.to_json()}
    ordered = {name: answers.pop(name) for name in questions if name in answers}
    return replace(
        whole,
        answers=ordered | answers,
        truncated=whole.truncated | part.truncated,
        input_tokens=max(whole.input_tokens, part.input_tokens),
        failure=whole.failure or part.failure,
        abstention=whole.abstention or part.abstention,
        model=whole.model or part.model,
        asked=asked,
    )
