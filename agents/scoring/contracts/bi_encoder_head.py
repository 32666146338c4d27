"""bi-encoder-head: tickets and questions are read apart, and a small head compares their vectors.

Graph `encoder`: ids, mask [texts, tokens] -> vector [texts, width], of length 1.
Graph `head`: state [tickets, width], question [questions, width] -> logit [tickets, questions].

noul: sigmoid(scale * logit + bias). choice and score: softmax(scale * cosine) over the options' or levels'
vectors; the head is not asked, since cosine ranked options better (deploy/model/README.md), and the
instructions are not read. A ticket is read once however many questions there are, and the vectors of
questions are kept, so that a further question is nearly free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from ticketgate.agents.scoring.contracts.answering import (
    Platt,
    StatementTemplate,
    distributed_answer,
    fill,
    noul_answer,
    sigmoid,
    softmax,
    wrong_manifest,
)
from ticketgate.agents.scoring.folder import ModelFolder
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.agents.scoring.session import open_graph
from ticketgate.agents.scoring.tokens import Tokenization, even_batches
from ticketgate.agents.scoring.vectors import TextVector, VectorCache
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.strict import JsonValue

NAME = "bi-encoder-head"

# As tokens a text takes up to twenty times its bytes; of 256 texts the batches are as even as of all.
TEXTS_AT_ONCE = 256

# The head holds some [tickets, questions, width] arrays at once; 4,096 pairs of width 384 are 6 MB each.
MAX_PAIRS = 4096

# Policies have tens of questions and the endpoint's callers hundreds; 8,192 vectors of width 384 are 12 MB.
MAX_CACHED_QUESTIONS = 8192

_PLACES = {
    "state": {"state"},
    "noul": {"instructions"},
    "noul_true": {"description"},
    "noul_false": {"description"},
    "option": {"label"},
    "described_option": {"label", "description"},
    "level": {"description"},
}


class _Template(StatementTemplate):
    """How state and question become text. `noul_true` and `noul_false` follow `noul` where given."""

    places = _PLACES


class _Softmax(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    scale: float


class _Calibration(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    noul: Platt
    choice: _Softmax
    score: _Softmax


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question's texts as vectors [texts, width]: one for a noul, else one an option or level."""

    question: Question
    vectors: NDArray[np.float32]
    is_truncated: bool


class BiEncoderHead:
    """A folder of this contract, opened."""

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        try:
            self._template = _Template.model_validate(folder.manifest.template)
            self._calibration = _Calibration.model_validate(folder.manifest.calibration)
        except ValidationError as err:
            raise wrong_manifest(folder, err) from err
        self._tokens = Tokenization(folder)
        self._encoder = open_graph(
            folder, "encoder", inputs=("ids", "mask"), output="vector", threads=threads
        )
        self._head = open_graph(folder, "head", inputs=("state", "question"), output="logit", threads=threads)
        self._questions = VectorCache(self._encode, size=MAX_CACHED_QUESTIONS)

    def score(self, states: Sequence[JsonValue], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """One Scores a state. Without questions nothing is read."""
        if not states or not questions:
            return tuple(Scores(answers={}) for _ in states)
        read = self._encode([self._fill(self._template.state, state=state) for state in states])
        vectors = np.stack([text.vector for text in read])
        asked = self._ask(questions)
        nouls = [name for name, a in asked.items() if isinstance(a.question, NoulQuestion)]
        logits = self._logits(vectors, [asked[name].vectors[0] for name in nouls])
        answers: list[dict[str, JsonValue]] = [{} for _ in states]
        for name, question in asked.items():
            if isinstance(question.question, NoulQuestion):
                chances = self._noul(logits[:, nouls.index(name)])
                for answer, chance in zip(answers, chances, strict=True):
                    answer[name] = noul_answer(chance)
            else:
                # Not by BLAS, whose threads are not ours to give.
                cosines = np.einsum("nd,md->nm", vectors, question.vectors)
                for answer, row in zip(answers, cosines, strict=True):
                    answer[name] = self._distributed(question.question, row)
        cut = frozenset(name for name, question in asked.items() if question.is_truncated)
        return tuple(
            Scores(
                answers=answer,
                truncated=frozenset(questions) if text.is_truncated else cut,
                input_tokens=text.tokens,
            )
            for answer, text in zip(answers, read, strict=True)
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, width], each of length 1."""
        return (
            np.stack([read.vector for read in self._encode(texts)]) if texts else np.empty((0, 1), np.float32)
        )

    def _ask(self, questions: Mapping[str, Question]) -> dict[str, _Asked]:
        texts = {name: self._texts(question) for name, question in questions.items()}
        found = iter(self._questions.get([text for listed in texts.values() for text in listed]))
        asked = {}
        for name, question in questions.items():
            parts = [next(found) for _ in texts[name]]
            asked[name] = _Asked(
                question=question,
                vectors=np.stack([part.vector for part in parts]),
                is_truncated=any(part.is_truncated for part in parts),
            )
        return asked

    def _texts(self, question: Question) -> list[str]:
        template = self._template
        match question:
            case NoulQuestion():
                text = ""
                if question.instructions is not None:
                    text += self._fill(template.noul, instructions=question.instructions)
                if question.when_true is not None:
                    text += self._fill(template.noul_true, description=question.when_true)
                if question.when_false is not None:
                    text += self._fill(template.noul_false, description=question.when_false)
                return [text.strip()]
            case ChoiceQuestion():
                return [
                    self._fill(template.option, label=label)
                    if description is None
                    else self._fill(template.described_option, label=label, description=description)
                    for label, description in question.criteria.items()
                ]
            case ScoreQuestion():
                return [self._fill(template.level, description=level) for level in question.criteria]

    def _fill(self, template: str, **values: JsonValue) -> str:
        return fill(template, most=self._tokens.most_chars, **values)

    def _logits(
        self, states: NDArray[np.float32], questions: Sequence[NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """[states, questions], computed in parts of at most MAX_PAIRS."""
        found = np.empty((len(states), len(questions)), np.float32)
        columns = min(len(questions), MAX_PAIRS)
        for left in range(0, len(questions), columns or 1):
            block = np.stack(questions[left : left + columns])
            rows = MAX_PAIRS // len(block)
            for top in range(0, len(states), rows):
                found[top : top + rows, left : left + columns] = self._head.run(
                    state=states[top : top + rows], question=block
                )
        return found

    def _noul(self, logits: NDArray[np.float32]) -> list[float]:
        fit = self._calibration.noul
        return [sigmoid(fit.scale * float(logit) + fit.bias) for logit in logits]

    def _distributed(
        self, question: ChoiceQuestion | ScoreQuestion, cosines: NDArray[np.float32]
    ) -> JsonValue:
        fit = self._calibration.choice if isinstance(question, ChoiceQuestion) else self._calibration.score
        return distributed_answer(question, softmax(cosines, fit.scale))

    def _encode(self, texts: Sequence[str]) -> list[TextVector]:
        """One vector a text. A repeated text is read again: finding it would cost more than it saves."""
        found: list[TextVector] = []
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            found += self._encode_some(texts[begin : begin + TEXTS_AT_ONCE])
        return found

    def _encode_some(self, texts: Sequence[str]) -> list[TextVector]:
        tokens = [self._tokens.read(text) for text in texts]
        found: dict[int, TextVector] = {}
        for batch in even_batches([len(t.ids) for t in tokens]):
            ids, mask = self._tokens.pad([tokens[place] for place in batch])
            vectors = self._encoder.run(ids=ids, mask=mask)
            for place, vector in zip(batch, vectors, strict=True):
                # A copy: a row would keep the whole batch's array alive in the cache.
                found[place] = TextVector(
                    vector.copy(), tokens=len(tokens[place].ids), is_truncated=tokens[place].is_truncated
                )
        return [found[place] for place in range(len(texts))]
