"""bi-encoder-head: tickets and questions are read apart, and a small head compares their vectors.

Graph `encoder`: ids, mask [texts, tokens] -> vector [texts, width], of length 1.
Graph `head`: state [tickets, width], question [questions, width] -> logit [tickets, questions].

noul: sigmoid(scale * logit + bias). choice and score: softmax(scale * cosine) over the options' or levels'
vectors, since cosine ranks options better than the head does (deploy/model/README.md). Where the folder has a
`statement`, instructions are read as well: softmax(way * scale * cosine + weight * logit), with the head's logit of
"instructions option" as a question about the ticket. An option is also put about itself, and `way` is -1 where the head
says that most options are not what is asked for: "Which is it not?" asks for the least alike.
A ticket is read once however many questions there are, and however often its text comes; the vectors of questions are
kept too, so that a further question is nearly free. A ticket longer than the window is read in as many windows as the
folder's limits allow, one behind the other, and its vector is the mean of theirs by their tokens; what lies beyond is
unread, and it counts as truncated. Of a question's text one window is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from ticketgate.agents.scoring.batches import even_batches
from ticketgate.agents.scoring.contracts.answering import (
    Platt,
    Put,
    distributed_answer,
    each_once,
    noul_answer,
    sigmoid,
    softmax,
    wrong_manifest,
)
from ticketgate.agents.scoring.contracts.wording import Template, Wording
from ticketgate.agents.scoring.folder import ModelFolder
from ticketgate.agents.scoring.scorer import Scores, TextCounts
from ticketgate.agents.scoring.session import open_graph
from ticketgate.agents.scoring.tokens import Tokenization, Tokens
from ticketgate.agents.scoring.vectors import TextCache, TextVector, VectorCache, digest_of, joined, stacked
from ticketgate.codecs.systemone.questions import (
    MAX_SHORTLISTED,
    ChoiceQuestion,
    NoulQuestion,
    Question,
)
from ticketgate.codecs.values.strict import JsonValue

NAME = "bi-encoder-head"

# As tokens a text takes up to twenty times its bytes; of 256 texts the batches are as even as of all.
TEXTS_AT_ONCE = 256

# Tickets that say the same are read once: alarms, form letters. 4,096 vectors with a digest of each text are 8 MB.
MAX_CACHED_TICKETS = 4096

# The head holds some [tickets, questions, width] arrays at once; 4,096 pairs of width 384 are 6 MB each.
MAX_PAIRS = 4096

# Policies have tens of questions and the endpoint's callers hundreds. A large choice may come to be asked about any of
# its options, each by itself and in a statement; such 22,048 vectors of width 384 are 34 MB.
MAX_CACHED_QUESTIONS = 2 * MAX_SHORTLISTED + 2048

# An option about itself takes a run of the head, and hangs on the question alone. By option, and not by question: of a
# large choice each ticket may be asked about others.
MAX_CACHED_FITS = MAX_SHORTLISTED

# So many options are put about themselves; more would say no more about which way round a question asks.
MOST_TRIED = 8


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
            template = Template.model_validate(folder.manifest.template)
            self._calibration = _Calibration.model_validate(folder.manifest.calibration)
        except ValidationError as err:
            raise wrong_manifest(folder, err) from err
        self._tokens = Tokenization(folder)
        self._wording = Wording(template, most_chars=self._tokens.most_chars)
        self._encoder = open_graph(
            folder, "encoder", inputs=("ids", "mask"), output="vector", threads=threads
        )
        self._head = open_graph(folder, "head", inputs=("state", "question"), output="logit", threads=threads)
        self._questions = VectorCache(self._encode_questions, size=MAX_CACHED_QUESTIONS)
        self._tickets = TextCache(self._encode, size=MAX_CACHED_TICKETS, key=digest_of)
        self._fit = lru_cache(MAX_CACHED_FITS)(self._find_fit)

    def score(self, states: Sequence[JsonValue], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """One Scores a state. Without questions nothing is read."""
        return self.score_each(states, [questions] * len(states))

    def score_each(
        self, states: Sequence[JsonValue], asked: Sequence[Mapping[str, Question]]
    ) -> Sequence[Scores]:
        """One Scores a state, to each of which its own questions are put. All states are read together."""
        put = each_once(asked)
        if not put:
            return tuple(Scores(answers={}) for _ in states)
        read = self._tickets.get([self._wording.state(state) for state in states])
        vectors = np.stack([text.vector for text in read])
        # In the order in which they were asked.
        answers: list[dict[str, JsonValue]] = [dict.fromkeys(questions) for questions in asked]
        cut: list[set[str]] = [set() for _ in states]
        together: dict[tuple[int, ...], list[tuple[Put, _Asked]]] = {}
        for each, question in zip(put, self._ask([each.question for each in put]), strict=True):
            together.setdefault(tuple(place for place, _ in each.to), []).append((each, question))
        for places, group in together.items():
            found = self._answers(vectors[list(places)], [question for _, question in group])
            for (each, question), column in zip(group, found, strict=True):
                for (place, name), answer in zip(each.to, column, strict=True):
                    answers[place][name] = answer
                    if question.is_truncated:
                        cut[place].add(name)
        return tuple(
            Scores(
                answers=answer,
                truncated=frozenset(answer if text.is_truncated else some),
                input_tokens=text.tokens,
            )
            for answer, text, some in zip(answers, read, cut, strict=True)
        )

    @property
    def text_counts(self) -> TextCounts:
        """Of tickets' texts."""
        return self._tickets.counts

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, width], each of length 1."""
        return stacked(self._encode(texts))

    def embed_ahead(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, width], each of length 1; where it is a ticket's whole text, `score` does not read it again."""
        return stacked(self._tickets.ahead(texts))

    def _ask(self, questions: Sequence[Question]) -> list[_Asked]:
        texts = [self._wording.texts(question) for question in questions]
        stated = [
            self._wording.statements(question, options)
            for question, options in zip(questions, texts, strict=True)
        ]
        listed = [text for pair in zip(texts, stated, strict=True) for some in pair for text in some]
        found = iter(self._questions.get(listed))
        asked = []
        for question, options, put in zip(questions, texts, stated, strict=True):
            parts = [next(found) for _ in options]
            statements = [next(found) for _ in put]
            asked.append(
                _Asked(
                    question=question,
                    vectors=np.stack([part.vector for part in parts]),
                    is_truncated=any(part.is_truncated for part in (*parts, *statements)),
                    statements=np.stack([part.vector for part in statements]) if statements else None,
                    way=self._way(options[:MOST_TRIED], put[:MOST_TRIED]),
                )
            )
        return asked

    def _way(self, options: Sequence[str], statements: Sequence[str]) -> int:
        """-1 if most options are not what the question asks for where a ticket says just that option, else 1."""
        if not statements:
            return 1
        fits = [self._fit(option, statement) for option, statement in zip(options, statements, strict=True)]
        return -1 if float(np.mean(np.array(fits, np.float32))) < 0 else 1

    def _find_fit(self, option: str, statement: str) -> float:
        """The head's logit of a statement about a ticket that says just its option."""
        state, question = (read.vector for read in self._questions.get((option, statement)))
        return float(self._logits(state[None], [question])[0, 0])

    def _answers(
        self, vectors: NDArray[np.float32], asked: Sequence[_Asked]
    ) -> Iterator[Sequence[JsonValue]]:
        """For each question its answers about all these tickets. The head reads the nouls in one run."""
        nouls = [each.vectors[0] for each in asked if isinstance(each.question, NoulQuestion)]
        columns = iter(self._logits(vectors, nouls).T)
        for each in asked:
            if isinstance(each.question, NoulQuestion):
                yield [noul_answer(chance) for chance in self._noul(next(columns))]
            else:
                yield [
                    distributed_answer(each.question, softmax(row, 1.0))
                    for row in self._compared(vectors, each)
                ]

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
            read.append(joined(each, [found[begin + place] for place in range(len(each))]))
            begin += len(each)
        return read
