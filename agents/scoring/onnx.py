"""The local scorer: a model folder, run by onnxruntime.

Promise: an `OnnxScorer` that was opened answers its folder's conformance rows as its builder's did, so that
a template, tokenizer or engine which reads otherwise is refused at start, not noticed in decisions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from ticketgate.agents.scoring.contracts import (
    Contract,
    Embedding,
    EmbeddingAhead,
    open_contract,
    score_each,
)
from ticketgate.agents.scoring.folder import ModelFolder, first_fault, load_folder
from ticketgate.agents.scoring.languages import Languages, words
from ticketgate.agents.scoring.scorer import Remembering, Scores, TextCounts
from ticketgate.agents.scoring.session import ENGINE_ERRORS
from ticketgate.agents.scoring.shipped import default_model_path
from ticketgate.agents.scoring.shortlist import EmbedFn
from ticketgate.agents.scoring.shortlisting import Shortlister, score_shortlisted
from ticketgate.agents.scoring.tokens import Tokenization
from ticketgate.agents.scoring.vectors import TextCache, digest_of
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.systemone.questions import Question, QuestionError
from ticketgate.codecs.values.strict import Malformed, decode

_OTHER_ANSWERS = (
    "the folder does not fit this version of ticketgate or onnxruntime: use the one that it was built with"
)

# What was found of so many tickets' texts is remembered, by a digest each: less than 1 MB.
MOST_KEPT = 4096


class Reader:
    """What a model can read: its languages, and words that its vocabulary has."""

    def __init__(self, languages: Languages, tokens: Tokenization) -> None:
        self._languages, self._tokens = languages, tokens
        self._found = TextCache(self._look_at, size=MOST_KEPT, key=digest_of)

    def refusals(self, states: Sequence[JsonValue]) -> Sequence[str | None]:
        """Why the model's answers about each state are not to be believed, or None."""
        return self._found.get([words(state) for state in states])

    def _look_at(self, texts: Sequence[str]) -> list[str | None]:
        return [self._refusal(text) for text in texts]

    def _refusal(self, text: str) -> str | None:
        if reason := self._languages.refusal_of(text):
            return reason
        if self._tokens.is_outside(text):
            return "most of the text is outside the model's vocabulary"
        return None


class OnnxScorer:
    """Scores tickets with a local ONNX model. Safe to call from several threads at once.

    `reader`: what it can read; without one it stands by every answer.
    """

    def __init__(self, contract: Contract, *, model: ModelRef, reader: Reader | None = None) -> None:
        self._contract, self._model, self._reader = contract, model, reader
        self._shortlister = Shortlister(
            (lambda: self.embed) if isinstance(contract, Embedding) else default_embed,
            embed_tickets=contract.embed_ahead if isinstance(contract, EmbeddingAhead) else None,
        )

    @classmethod
    def open(cls, path: Path, *, threads: int = 1) -> Self:
        """Load the folder, open its graphs, check its conformance rows. Raises ScorerError.

        `threads`: how many threads one inference may use, at least 1.
        """
        if threads < 1:
            raise ValueError(f"an inference needs at least one thread, not {threads}")
        folder = load_folder(path)
        contract = open_contract(folder, threads=threads)
        _check_conformance(folder, contract)
        return cls(contract, model=folder.model, reader=_reader(folder))

    @property
    def model(self) -> ModelRef:
        """The folder's name@version, and the SHA-256 of all in it that decides."""
        return self._model

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """One Scores a ticket, in order. Raises what onnxruntime raises."""
        return score_shortlisted(self._score, self._shortlister, tickets, questions)

    @property
    def text_counts(self) -> TextCounts:
        """Of tickets' texts; a model that reads ticket and question together remembers none."""
        return self._contract.text_counts if isinstance(self._contract, Remembering) else TextCounts()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, width], by the model's encoder. Raises TypeError if the model reads ticket and question together."""
        if not isinstance(self._contract, Embedding):
            raise TypeError("this model has no vectors of single texts")
        return self._contract.embed(texts)

    def _score(self, tickets: Sequence[Ticket], asked: Sequence[Mapping[str, Question]]) -> Sequence[Scores]:
        scores = score_each(self._contract, [ticket.state for ticket in tickets], asked)
        if self._reader is None:
            return scores
        reasons = self._reader.refusals([ticket.state for ticket in tickets])
        return [
            each if reason is None else replace(each, abstention=reason)
            for each, reason in zip(scores, reasons, strict=True)
        ]


def _reader(folder: ModelFolder) -> Reader | None:
    """None where the manifest does not say what the model reads."""
    if folder.manifest.languages is None:
        return None
    try:
        return Reader(Languages(folder.manifest.languages), Tokenization(folder))
    except ValueError as err:
        raise folder.refusal(f"manifest.json: languages: {err}") from err


def default_embed() -> EmbedFn:
    """The encoder of the model that ships with ticketgate, for scorers that have none of their own."""
    return OnnxScorer.open(default_model_path()).embed


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    state: JsonValue
    questions: JsonValue
    answers: dict[str, JsonValue]


class _Conformance(BaseModel):
    """Inputs and the answers expected; `tolerance` is how far a number may be off."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    tolerance: Annotated[float, Field(gt=0, lt=0.1)]
    rows: Annotated[list[_Row], Field(min_length=1)]


def _check_conformance(folder: ModelFolder, contract: Contract) -> None:
    name = folder.manifest.conformance
    content = folder.content[name]
    value = decode(content, max_bytes=len(content))
    if isinstance(value, Malformed):
        raise folder.refusal(f"{name}: {value.reason}")
    try:
        conformance = _Conformance.model_validate(value)
        questions = [read_questions(row.questions) for row in conformance.rows]
    except ValidationError as err:
        raise folder.refusal(f"{name}: {first_fault(err)}") from err
    except QuestionError as err:
        raise folder.refusal(f"{name}: {err}") from err
    for place, (row, asked) in enumerate(zip(conformance.rows, questions, strict=True)):
        try:
            (scores,) = contract.score([row.state], asked)
        except ENGINE_ERRORS as err:
            raise folder.refusal(
                f"{name}, row {place}: onnxruntime fails: {' '.join(str(err).split())}"
            ) from err
        difference = _difference(row.answers, dict(scores.answers), conformance.tolerance)
        if difference is not None:
            raise folder.refusal(f"{name}, row {place}: {difference}", remedy=_OTHER_ANSWERS)


def _difference(expected: object, found: object, tolerance: float, where: str = "answers") -> str | None:
    """The first place at which two answers differ, or None."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if expected.keys() != found.keys():
            return f"{where}: expected {sorted(expected)}, found {sorted(found)}"
        for key, value in expected.items():
            if difference := _difference(value, found[key], tolerance, f"{where}.{key}"):
                return difference
        return None
    if isinstance(expected, (int, float)) and isinstance(found, (int, float)):
        # Written so that NaN differs from everything.
        return None if abs(expected - found) <= tolerance else f"{where}: expected {expected}, found {found}"
    return None if expected == found else f"{where}: expected {expected!r}, found {found!r}"
