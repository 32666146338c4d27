"""A scorer's way around choices too large to ask whole: shortlist, then ask about the rest of them.

Promise: a question with `shortlist` is reduced for each ticket by itself, before the model sees it; its answer is over
the kept options, `Scores.asked` has the question as it was asked, and the answer's `x_shortlist` tells what was kept.
Then all tickets are scored together, each with questions of its own: a ticket gets what it would get alone.
The options of a question are embedded once for as long as the question lives, however many there are.
"""

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ticketgate.agents.scoring.asked import SHORTLIST, kept
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.agents.scoring.shortlist import (
    CachedEmbed,
    EmbedFn,
    OptionVectors,
    Shortlist,
    as_vectors,
    asked_text,
    cached_embed_fn,
    option_texts,
    whole,
)
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import MAX_SHORTLISTED, ChoiceQuestion, Question

# For who asks with a question made anew each time, with options of before: a cache that holds fewer than one question
# may have forgets the first before it comes to the last. So many vectors of width 384 are 15 MB.
MOST_KEPT: Final = MAX_SHORTLISTED
# While 10,000 texts are embedded in one call, what is in between takes 50 MB that are not given back.
OPTIONS_AT_ONCE: Final = 512

ScoreEach = Callable[[Sequence[Ticket], Sequence[Mapping[str, Question]]], Sequence[Scores]]
"""Tickets, and for each its own questions, to one Scores a ticket. What all tickets are asked is one object."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A question's options, and whose they are."""

    question: "weakref.ref[ChoiceQuestion]"
    options: OptionVectors


class Shortlister:
    """Makes shortlists, by an embedding function that is made when it is first needed. For several threads at once.

    A policy's question lives as long as its policy, and its options are kept beside it. Of a question that is made for
    one request they are kept by their texts, MOST_KEPT at most. embed_tickets: gives tickets' texts the same vectors as
    the function, and remembers them for the scorer; without one it is the function too.
    """

    def __init__(self, make: Callable[[], EmbedFn], *, embed_tickets: EmbedFn | None = None) -> None:
        self._make = make
        self._embed = embed_tickets
        self._embed_options: CachedEmbed | None = None
        self._opening = threading.Lock()
        # Two lanes that begin together would embed the same 10,000 texts on the same cores.
        self._embedding = threading.Lock()
        self._kept: dict[int, _Kept] = {}

    def shortlists(
        self, tickets: Sequence[Ticket], questions: Mapping[str, ChoiceQuestion]
    ) -> list[dict[str, Shortlist]]:
        """For each ticket the shortlist of each question, all of which have `shortlist`. Raises what making the
        embedding function or embedding raises, and ShortlistError."""
        found: list[dict[str, Shortlist]] = [{} for _ in tickets]
        large: dict[str, list[str]] = {}
        for name, question in questions.items():
            if len(question.criteria) <= _most(question):
                for each in found:
                    each[name] = whole(question.labels, _most(question))
            else:
                large[name] = [asked_text(ticket.state, question.instructions) for ticket in tickets]
        vectors = self._vectors([text for texts in large.values() for text in texts])
        for name, texts in large.items():
            options = self._options(questions[name])
            for each, text in zip(found, texts, strict=True):
                each[name] = options.nearest(vectors[text], _most(questions[name]))
        return found

    def _vectors(self, texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """Of each text, in one call. They are not kept: tickets would drive out what is asked for again."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        embed, _ = self._opened()
        return dict(zip(distinct, as_vectors(embed(distinct), len(distinct)), strict=True))

    def _options(self, question: ChoiceQuestion) -> OptionVectors:
        if (options := self._found(question)) is not None:
            return options
        _, embed = self._opened()
        with self._embedding:
            if (options := self._found(question)) is not None:
                return options
            texts = option_texts(question.criteria.items())
            parts = (embed(texts[at : at + OPTIONS_AT_ONCE]) for at in range(0, len(texts), OPTIONS_AT_ONCE))
            options = OptionVectors(question.labels, parts)
            key = id(question)
            # Without a lock, for it is called wherever the question ends; the place is free before another takes it.
            self._kept[key] = _Kept(weakref.ref(question, lambda _: self._kept.pop(key, None)), options)
        return options

    def _found(self, question: ChoiceQuestion) -> OptionVectors | None:
        found = self._kept.get(id(question))
        return found.options if found is not None and found.question() is question else None

    def _opened(self) -> tuple[EmbedFn, CachedEmbed]:
        """What embeds tickets, and what embeds options."""
        with self._opening:
            if self._embed is None or self._embed_options is None:
                made = self._make()
                self._embed = self._embed or made
                self._embed_options = cached_embed_fn(made, MOST_KEPT)
            return self._embed, self._embed_options


def score_shortlisted(
    score: ScoreEach, shortlister: Shortlister, tickets: Sequence[Ticket], questions: Mapping[str, Question]
) -> Sequence[Scores]:
    """What `score` gives, with shortlists where the questions ask for them. Raises what both raise."""
    large = {
        name: question
        for name, question in questions.items()
        if isinstance(question, ChoiceQuestion) and question.shortlist is not None
    }
    if not large:
        return score(tickets, [questions] * len(tickets))
    shortlists = shortlister.shortlists(tickets, large)
    asked = _reduced(large, shortlists)
    found = score(tickets, [{**questions, **each} for each in asked])
    return [
        _told(scores, questions, each, made)
        for scores, each, made in zip(found, asked, shortlists, strict=True)
    ]


def _most(question: ChoiceQuestion) -> int:
    return question.shortlist or 0


def _reduced(
    large: Mapping[str, ChoiceQuestion], shortlists: Sequence[Mapping[str, Shortlist]]
) -> list[dict[str, Question]]:
    """For each ticket its questions with the kept options alone; those that kept the same are one object."""
    made: dict[tuple[str, tuple[str, ...]], ChoiceQuestion] = {}
    asked: list[dict[str, Question]] = []
    for each in shortlists:
        questions: dict[str, Question] = {}
        for name, shortlist in each.items():
            key = (name, shortlist.labels)
            if key not in made:
                made[key] = kept(large[name], shortlist.labels)
            questions[name] = made[key]
        asked.append(questions)
    return asked


def _told(
    scores: Scores,
    questions: Mapping[str, Question],
    asked: Mapping[str, Question],
    shortlists: Mapping[str, Shortlist],
) -> Scores:
    """The scores, with what was asked, and in each answer what was kept."""
    answers = dict(scores.answers)
    for name, shortlist in shortlists.items():
        if isinstance(answer := answers.get(name), dict):
            answers[name] = {**answer, SHORTLIST: shortlist.to_json()}
    ordered = {name: answers.pop(name) for name in questions if name in answers}
    return replace(scores, answers=ordered | answers, asked=asked)
