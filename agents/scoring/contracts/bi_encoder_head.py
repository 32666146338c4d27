"""bi-encoder-head: tickets and questions are read apart, and a small head compares their vectors.

Graph `encoder`: ids, mask [texts, tokens] -> vector [texts, width], of length 1.
Graph `head`: state [tickets, width], question [questions, width] -> logit [tickets, questions].

noul: sigmoid(scale * logit + bias). choice and score: softmax(scale * cosine) over the options' or levels'
vectors, since cosine ranks options better than the head does (deploy/model/README.md). Where the folder has a
`statement`, instructions are read as well: softmax(way * scale * cosine + weight * logit), with the head's logit of
"instructions option" as a question about the ticket. An option is also put about itself, and `way` is -1 where the head
says that most options are not what is asked for: "Which is it not?" asks for the least alike.
A ticket is read once however many questions there are, and the vectors of questions are kept, so that a further
question is nearly free. A ticket longer than the window is read in as many windows as the folder's limits allow, one
behind the other, and its vector is the mean of theirs by their tokens; what lies beyond is unread, and it counts as
truncated. Of a question's text one window is read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
from ticketgate.agents.scoring.tokens import Tokenization, Tokens, even_batches
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

# A way takes a run of the head, and hangs on the question alone: a tenth of what one ticket takes.
MAX_CACHED_WAYS = 256

# So many options are put about themselves; more would say no more about which way round a question asks.
MOST_TRIED = 8

_PLACES = {
    "state": {"state"},
    "noul": {"instructions"},
    "noul_true": {"description"},
    "noul_false": {"description"},
    "option": {"label"},
    "described_option": {"label", "description"},
    "level": {"description"},
    "statement": {"instructions", "option"},
}


class _Template(StatementTemplate):
    """How state and question become text. `noul_true` and `noul_false` follow `noul` where given."""

    places = _PLACES


class _Softmax(BaseModel):
    """`weight`: how much the head's logit of a statement counts beside the scaled cosine."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    scale: float
    weight: float = 0.0


class _Calibration(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    noul: Platt
    choice: _Softmax
    score: _Softmax


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question's texts as vectors [texts, width]: one for a noul, else one an option or level.

    `statements` [texts, width]: the instructions with each option or level, where they are read. `way`: -1 where what
    is least alike is asked for, else 1.
    """

    question: Question
    vectors: NDArray[np.float32]
    is_truncated: bool
    statements: NDArray[np.float32] | None = None
    way: int = 1


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
        self._questions = VectorCache(self._encode_questions, size=MAX_CACHED_QUESTIONS)
        self._way = lru_cache(MAX_CACHED_WAYS)(self._find_way)

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
                for answer, row in zip(answers, self._compared(vectors, question), strict=True):
                    answer[name] = distributed_answer(question.question, softmax(row, 1.0))
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
        stated = {name: self._statements(question, texts[name]) for name, question in questions.items()}
        listed = [text for name in questions for text in (*texts[name], *stated[name])]
        found = iter(self._questions.get(listed))
        asked = {}
        for name, question in questions.items():
            parts = [next(found) for _ in texts[name]]
            statements = [next(found) for _ in stated[name]]
            asked[name] = _Asked(
                question=question,
                vectors=np.stack([part.vector for part in parts]),
                is_truncated=any(part.is_truncated for part in (*parts, *statements)),
                statements=np.stack([part.vector for part in statements]) if statements else None,
                way=self._way(tuple(texts[name][:MOST_TRIED]), tuple(stated[name][:MOST_TRIED])),
            )
        return asked

    def _find_way(self, options: Sequence[str], statements: Sequence[str]) -> int:
        """-1 if most options are not what the question asks for where a ticket says just that option, else 1."""
        if not statements:
            return 1
        vectors = [read.vector for read in self._questions.get((*options, *statements))]
        logits = self._logits(np.stack(vectors[: len(options)]), vectors[len(options) :])
        return -1 if float(np.diagonal(logits).mean()) < 0 else 1

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

    def _statements(self, question: Question, options: Sequence[str]) -> list[str]:
        """The instructions with each option or level, where the folder has them read; for a noul none."""
        statement = self._template.statement
        if isinstance(question, NoulQuestion) or statement is None or question.instructions is None:
            return []
        return [
            self._fill(statement, instructions=question.instructions, option=option) for option in options
        ]

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

    def _compared(self, vectors: NDArray[np.float32], asked: _Asked) -> NDArray[np.float32]:
        """[tickets, options]: what the options' or levels' probabilities are the softmax of."""
        fit = (
            self._calibration.choice
            if isinstance(asked.question, ChoiceQuestion)
            else self._calibration.score
        )
        # Not by BLAS, whose threads are not ours to give.
        found: NDArray[np.float32] = np.einsum("nd,md->nm", vectors, asked.vectors)
        found = found * np.float32(asked.way * fit.scale)
        if asked.statements is not None:
            found += np.float32(fit.weight) * self._logits(vectors, list(asked.statements))
        return found

    def _encode(self, texts: Sequence[str]) -> list[TextVector]:
        """One vector a text. A repeated text is read again: finding it would cost more than it saves."""
        return self._encode_windows(texts, self._tokens.windows)

    def _encode_questions(self, texts: Sequence[str]) -> list[TextVector]:
        """One vector a text of a question, of which one window is read."""
        return self._encode_windows(texts, lambda text: [self._tokens.read(text)])

    def _encode_windows(
        self, texts: Sequence[str], read: Callable[[str], Sequence[Tokens]]
    ) -> list[TextVector]:
        found: list[TextVector] = []
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            found += self._encode_some([read(text) for text in texts[begin : begin + TEXTS_AT_ONCE]])
        return found

    def _encode_some(self, windows: Sequence[Sequence[Tokens]]) -> list[TextVector]:
        tokens = [window for each in windows for window in each]
        found: dict[int, NDArray[np.float32]] = {}
        for batch in even_batches([len(t.ids) for t in tokens]):
            ids, mask = self._tokens.pad([tokens[place] for place in batch])
            found.update(zip(batch, self._encoder.run(ids=ids, mask=mask), strict=True))
        read, begin = [], 0
        for each in windows:
            read.append(_joined(each, [found[begin + place] for place in range(len(each))]))
            begin += len(each)
        return read


def _joined(windows: Sequence[Tokens], vectors: Sequence[NDArray[np.float32]]) -> TextVector:
    """One text's vector: the mean of its windows' by their tokens, of length 1."""
    lengths = [len(window.ids) for window in windows]
    is_truncated = any(window.is_truncated for window in windows)
    if len(windows) == 1:
        # A copy: a row would keep the whole batch's array alive in the cache.
        return TextVector(vectors[0].copy(), tokens=lengths[0], is_truncated=is_truncated)
    total = np.einsum("w,wd->d", np.array(lengths, np.float32), np.stack(vectors))
    size = max(float(np.sqrt(np.einsum("d,d->", total, total))), 1e-9)
    return TextVector(total / np.float32(size), tokens=sum(lengths), is_truncated=is_truncated)
