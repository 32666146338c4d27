"""option-markers: one sequence holds a question, a marker before each of its options, and the ticket; the model says
how well each marked option fits. The contract of Laya, in both its forms, and of Julia-1 and its kin.

Fused: graph `model`: ids, mask [rows, tokens], marker_pos, marker_mask [rows, options], qtype [rows] -> logits [rows,
options]. Split: graph `encoder`: ids, mask -> hidden [rows, tokens, width]; graph `head`: hidden, mask, marker_pos,
marker_mask, qtype -> logits. The manifest's graphs say which.

The sequence: [CLS] question [SEP] ([MASK] option)… [SEP] ticket [SEP]; `template` names the three tokens and words the
question and the options. qtype is 0 choice, 1 score, 2 noul; a noul's options are false, true, whatever their words.
softmax(logits / temperature), temperature by type and, where the manifest has it, by the number of options. A row that
is too long loses the end of the ticket and, if that is not enough, of the question and of each option alike; the
question counts as truncated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from ticketgate.agents.scoring.batches import even_batches
from ticketgate.agents.scoring.contracts.answering import (
    by_count,
    distributed_answer,
    each_once,
    fill,
    noul_answer,
    option_limit,
    require_fits,
    require_places,
    softmax,
    too_many,
    wrong_manifest,
)
from ticketgate.agents.scoring.folder import ModelFolder
from ticketgate.agents.scoring.scorer import Failure, Scores
from ticketgate.agents.scoring.session import open_graph
from ticketgate.agents.scoring.tokens import Tokenization, Tokens
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.strict import JsonValue

NAME = "option-markers"

# Of 64 rows most batches are full, and their tokens take less than 1 MB.
ROWS_AT_ONCE = 64

QTYPE: Final = {"choice": 0, "score": 1, "noul": 2}
# What Laya clamps its temperatures to; beyond, a calibration has gone wrong.
TEMPERATURES: Final = (0.5, 5.0)
_MARKERS: Final = ("marker_pos", "marker_mask", "qtype")

_PLACES = {
    "state": {"state"},
    "question": {"type", "instructions"},
    "true": set[str](),
    "false": set[str](),
    "option": {"label"},
    "described_option": {"label", "description"},
    "level": {"description"},
    "cls": set[str](),
    "sep": set[str](),
    "mask": set[str](),
}


class _Template(BaseModel):
    """How a row is worded. `true` and `false` are the labels of a noul's options; `cls`, `sep`, `mask` are tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    state: str
    question: str
    true: str
    false: str
    option: str
    described_option: str
    level: str
    cls: str
    sep: str
    mask: str

    @field_validator("*")
    @classmethod
    def _known_places(cls, text: str, info: object) -> str:
        return require_places(text, _PLACES[getattr(info, "field_name", "")])


class _Calibration(BaseModel):
    """Temperatures by type; each has `temperature`, and may have others for a number of options."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    noul: dict[str, float]
    choice: dict[str, float]
    score: dict[str, float]

    @field_validator("*")
    @classmethod
    def _fits(cls, fits: dict[str, float]) -> Mapping[str, float]:
        least, most = TEMPERATURES
        return require_fits(fits, "temperature", least=least, most=most)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as tokens, cut so that a marker for each option and the special tokens fit."""

    question: Question
    opening: tuple[int, ...]
    markers: tuple[int, ...]
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """One question about one ticket."""

    tokens: Tokens
    asked: _Asked


class OptionMarkers:
    """A folder of this contract, opened."""

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        try:
            self._template = _Template.model_validate(folder.manifest.template)
            self._calibration = _Calibration.model_validate(folder.manifest.calibration)
        except ValidationError as err:
            raise wrong_manifest(folder, err) from err
        self._tokens = Tokenization(folder)
        self._most_options = option_limit(folder)
        self._cls, self._sep, self._mask = (
            self._special(folder, token)
            for token in (self._template.cls, self._template.sep, self._template.mask)
        )
        graphs = folder.manifest.graphs.keys()
        self._encoder = None
        if graphs == {"encoder", "head"}:
            self._encoder = open_graph(
                folder, "encoder", inputs=("ids", "mask"), output="hidden", threads=threads
            )
            self._model = open_graph(
                folder, "head", inputs=("hidden", "mask", *_MARKERS), output="logits", threads=threads
            )
        elif graphs == {"model"}:
            self._model = open_graph(
                folder, "model", inputs=("ids", "mask", *_MARKERS), output="logits", threads=threads
            )
        else:
            raise folder.refusal(
                f"contract {NAME} needs a graph model, or the graphs encoder and head; "
                f"the manifest names {', '.join(sorted(graphs)) or 'none'}"
            )

    def score(self, states: Sequence[JsonValue], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """One Scores a state."""
        return self.score_each(states, [questions] * len(states))

    def score_each(
        self, states: Sequence[JsonValue], asked: Sequence[Mapping[str, Question]]
    ) -> Sequence[Scores]:
        """One Scores a state, to each of which its own questions are put."""
        put: dict[int, _Asked] = {}
        failures: dict[int, Failure] = {}
        for each in each_once(asked):
            found = self._ask(each.to[0][1], each.question)
            if isinstance(found, Failure):
                failures |= {place: found for place, _ in each.to if place not in failures}
            else:
                put[id(each.question)] = found
        answers: list[dict[str, JsonValue]] = [{} for _ in states]
        cut: list[set[str]] = [set() for _ in states]
        counts = [0] * len(states)
        # Some at a time: each row repeats its question and its ticket.
        rows = (
            (ticket, name, self._row(put[id(question)], text))
            for ticket, state in enumerate(states)
            if ticket not in failures
            for text in (self._tokens.read_words(self._fill(self._template.state, state=state)),)
            for name, question in asked[ticket].items()
        )
        while part := list(islice(rows, ROWS_AT_ONCE)):
            logits = self._logits([row for _, _, row in part])
            for place, (ticket, name, row) in enumerate(part):
                answers[ticket][name] = self._answer(row.asked.question, logits[place])
                counts[ticket] += len(row.tokens.ids)
                if row.tokens.is_truncated:
                    cut[ticket].add(name)
        return tuple(
            Scores(
                answers=answers[ticket],
                truncated=frozenset(cut[ticket]),
                input_tokens=counts[ticket],
                failure=failures.get(ticket),
            )
            for ticket in range(len(states))
        )

    def _special(self, folder: ModelFolder, token: str) -> int:
        found = self._tokens.token_id(token)
        if found is None:
            raise folder.refusal(
                f'{folder.manifest.tokenizer.file} has no token "{token}", which template names'
            )
        return found

    def _ask(self, name: str, question: Question) -> _Asked | Failure:
        count = len(question.labels)
        # [CLS], three [SEP], and a token of the ticket.
        room = self._tokens.window - 5 - count
        most = min(self._most_options, self._tokens.window - 5)
        if count > self._most_options or room < 0:
            return too_many(name, count, most)
        text = self._tokens.read_words(
            self._fill(self._template.question, type=question.type, instructions=question.instructions)
        )
        options = [self._tokens.read_words(option) for option in self._options(question)]
        is_truncated = text.is_truncated or any(option.is_truncated for option in options)
        words = [text.ids, *(option.ids for option in options)]
        if sum(map(len, words)) > room:
            is_truncated = True
            words = _shortened(words, room)
        opening = [self._cls, *words[0], self._sep]
        markers = []
        for option in words[1:]:
            markers.append(len(opening))
            opening += [self._mask, *option]
        return _Asked(question, (*opening, self._sep), tuple(markers), is_truncated)

    def _options(self, question: Question) -> Iterator[str]:
        template = self._template
        match question:
            case NoulQuestion():
                yield self._option(template.false, question.when_false)
                yield self._option(template.true, question.when_true)
            case ChoiceQuestion():
                for label, text in question.criteria.items():
                    yield self._option(label, text)
            case ScoreQuestion():
                for level in question.criteria:
                    yield self._fill(template.level, description=level)

    def _option(self, label: str, text: JsonValue) -> str:
        if text is None:
            return self._fill(self._template.option, label=label)
        return self._fill(self._template.described_option, label=label, description=text)

    def _fill(self, template: str, **values: JsonValue) -> str:
        return fill(template, most=self._tokens.most_chars, **values)

    def _row(self, asked: _Asked, text: Tokens) -> _Row:
        room = self._tokens.window - len(asked.opening) - 1
        ids = (*asked.opening, *text.ids[:room], self._sep)
        is_truncated = asked.is_truncated or text.is_truncated or len(text.ids) > room
        return _Row(Tokens(ids, is_truncated), asked)

    def _logits(self, rows: Sequence[_Row]) -> dict[int, NDArray[np.float32]]:
        found: dict[int, NDArray[np.float32]] = {}
        for batch in even_batches([len(row.tokens.ids) for row in rows]):
            chosen = [rows[place] for place in batch]
            ids, mask = self._tokens.pad([row.tokens for row in chosen])
            positions = np.zeros((len(batch), max(len(row.asked.markers) for row in chosen)), np.int64)
            present = np.zeros(positions.shape, np.int64)
            for number, row in enumerate(chosen):
                positions[number, : len(row.asked.markers)] = row.asked.markers
                present[number, : len(row.asked.markers)] = 1
            qtype = np.array([QTYPE[row.asked.question.type] for row in chosen], np.int64)
            text = (
                {"ids": ids} if self._encoder is None else {"hidden": self._encoder.run(ids=ids, mask=mask)}
            )
            logits = self._model.run(
                **text, mask=mask, marker_pos=positions, marker_mask=present, qtype=qtype
            )
            for place, row, line in zip(batch, chosen, logits, strict=True):
                found[place] = line[: len(row.asked.markers)]
        return found

    def _answer(self, question: Question, logits: NDArray[np.float32]) -> JsonValue:
        fits: Mapping[str, float] = getattr(self._calibration, question.type)
        chances = softmax(logits, 1 / by_count(fits, len(logits), "temperature"))
        return (
            noul_answer(chances[1])
            if isinstance(question, NoulQuestion)
            else distributed_answer(question, chances)
        )


def _shortened(texts: Sequence[tuple[int, ...]], room: int) -> list[tuple[int, ...]]:
    """The texts with ends cut off the longest, until they have `room` tokens in all."""
    least, most = 0, max(map(len, texts))
    while least < most:  # the largest length to which all may be kept
        middle = (least + most + 1) // 2
        if sum(min(len(text), middle) for text in texts) <= room:
            least = middle
        else:
            most = middle - 1
    return [text[:least] for text in texts]
