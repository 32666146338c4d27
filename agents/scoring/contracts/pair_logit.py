"""pair-logit: a cross-encoder reads the ticket and a statement together, and says how well they go together.

Graph `model`: ids, mask [pairs, tokens], and types [pairs, tokens] if it has them -> logit [pairs] or [pairs, 1].

noul: sigmoid(scale * logit + bias) of one pair. choice and score: softmax(scale * logits) over a pair for each option
or level; `calibration` may give another scale for a number of options. A pair that is too long loses the end of the
ticket, and the question counts as truncated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from ticketgate.agents.scoring.batches import even_batches
from ticketgate.agents.scoring.contracts.answering import (
    Platt,
    Put,
    StatementTemplate,
    by_count,
    clip,
    distributed_answer,
    each_once,
    fill,
    noul_answer,
    option_limit,
    require_fits,
    sigmoid,
    softmax,
    too_many,
    wrong_manifest,
)
from ticketgate.agents.scoring.folder import ModelFolder
from ticketgate.agents.scoring.scorer import Failure, Scores
from ticketgate.agents.scoring.session import Array, open_graph
from ticketgate.agents.scoring.tokens import Begun, Tokenization, Tokens
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.strict import JsonValue

NAME = "pair-logit"

# Of 64 pairs most batches are full, and their tokens take less than 1 MB.
PAIRS_AT_ONCE = 64

_PLACES = {
    "state": {"state"},
    "noul": {"instructions"},
    "noul_true": {"description"},
    "noul_false": {"description"},
    "option": {"instructions", "label"},
    "described_option": {"instructions", "label", "description"},
    "level": {"instructions", "description"},
}


class _Template(StatementTemplate):
    """How state and statement become text. `noul_true` and `noul_false` follow `noul` where given."""

    places = _PLACES


class _Calibration(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    noul: Platt
    choice: dict[str, float]
    score: dict[str, float]

    @field_validator("choice", "score")
    @classmethod
    def _fits(cls, fits: dict[str, float]) -> Mapping[str, float]:
        return require_fits(fits, "scale", least=1e-3, most=1e3)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a pair belongs: which ticket, which question, which option or level."""

    ticket: int
    question: str
    option: int


class PairLogit:
    """A folder of this contract, opened."""

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        try:
            self._template = _Template.model_validate(folder.manifest.template)
            self._calibration = _Calibration.model_validate(folder.manifest.calibration)
        except ValidationError as err:
            raise wrong_manifest(folder, err) from err
        self._tokens = Tokenization(folder)
        self._tokens.require_pairs(folder)
        self._most_options = option_limit(folder)
        self._model = open_graph(
            folder, "model", inputs=("ids", "mask"), optional=("types",), output="logit", threads=threads
        )

    def score(self, states: Sequence[JsonValue], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """One Scores a state."""
        return self.score_each(states, [questions] * len(states))

    def score_each(
        self, states: Sequence[JsonValue], asked: Sequence[Mapping[str, Question]]
    ) -> Sequence[Scores]:
        """One Scores a state, to each of which its own questions are put."""
        failures = [self._failure(questions) for questions in asked]
        texts = {
            ticket: self._begin(self._template.state, state=state)
            for ticket, state in enumerate(states)
            if failures[ticket] is None
        }
        logits: dict[_Place, float] = {}
        cut: list[set[str]] = [set() for _ in states]
        counts = [0] * len(states)
        # Some at a time: as text and tokens all pairs of a request together are a hundred times as long as the request.
        pairs = self._pairs(texts, each_once(asked))
        while part := list(islice(pairs, PAIRS_AT_ONCE)):
            for (place, pair), logit in zip(part, self._logits([pair for _, pair in part]), strict=True):
                logits[place] = logit
                counts[place.ticket] += len(pair.ids)
                if pair.is_truncated:
                    cut[place.ticket].add(place.question)
        return tuple(
            Scores(
                answers={
                    name: self._answer(logits, ticket, name, question)
                    for name, question in (questions if failure is None else {}).items()
                },
                truncated=frozenset(cut[ticket]),
                input_tokens=counts[ticket],
                failure=failure,
            )
            for ticket, (questions, failure) in enumerate(zip(asked, failures, strict=True))
        )

    def _pairs(self, texts: Mapping[int, Begun], put: Sequence[Put]) -> Iterator[tuple[_Place, Tokens]]:
        for each in put:
            to = [(ticket, name) for ticket, name in each.to if ticket in texts]
            for option, statement in enumerate(self._statements(each.question) if to else ()):
                begun = self._tokens.begin(statement)
                for ticket, name in to:
                    yield _Place(ticket, name, option), self._tokens.pair(texts[ticket], begun)

    def _begin(self, template: str, **values: JsonValue) -> Begun:
        return self._tokens.begin(self._fill(template, **values))

    def _fill(self, template: str, **values: JsonValue) -> str:
        return fill(template, most=self._tokens.most_chars, **values)

    def _failure(self, questions: Mapping[str, Question]) -> Failure | None:
        for name, question in questions.items():
            if isinstance(question, ChoiceQuestion) and len(question.labels) > self._most_options:
                return too_many(name, len(question.labels), self._most_options)
        return None

    def _statements(self, question: Question) -> Iterator[str]:
        template = self._template
        # Rendered once, and not for each option.
        asked = clip(question.instructions, self._tokens.most_chars)
        match question:
            case NoulQuestion():
                text = "" if asked is None else self._fill(template.noul, instructions=asked)
                if question.when_true is not None:
                    text += self._fill(template.noul_true, description=question.when_true)
                if question.when_false is not None:
                    text += self._fill(template.noul_false, description=question.when_false)
                yield text.strip()
            case ChoiceQuestion():
                for label, described in question.criteria.items():
                    wording = template.option if described is None else template.described_option
                    yield self._fill(wording, instructions=asked, label=label, description=described)
            case ScoreQuestion():
                for level in question.criteria:
                    yield self._fill(template.level, instructions=asked, description=level)

    def _logits(self, pairs: Sequence[Tokens]) -> list[float]:
        found = [0.0] * len(pairs)
        for batch in even_batches([len(pair.ids) for pair in pairs]):
            chosen = [pairs[place] for place in batch]
            ids, mask = self._tokens.pad(chosen)
            inputs: dict[str, Array] = {"ids": ids, "mask": mask}
            if "types" in self._model.inputs:
                inputs["types"] = self._types(chosen, ids.shape)
            logits = self._model.run(**inputs).reshape(len(batch))
            for place, logit in zip(batch, logits.tolist(), strict=True):
                found[place] = logit
        return found

    def _types(self, pairs: Sequence[Tokens], shape: tuple[int, ...]) -> NDArray[np.int64]:
        types = np.zeros(shape, np.int64)
        for row, pair in enumerate(pairs):
            types[row, : len(pair.types)] = pair.types
        return types

    def _answer(
        self, logits: Mapping[_Place, float], ticket: int, name: str, question: Question
    ) -> JsonValue:
        fit = self._calibration
        if isinstance(question, NoulQuestion):
            return noul_answer(sigmoid(fit.noul.scale * logits[_Place(ticket, name, 0)] + fit.noul.bias))
        count = len(question.labels)
        scales = fit.choice if isinstance(question, ChoiceQuestion) else fit.score
        found = np.array([logits[_Place(ticket, name, option)] for option in range(count)], np.float32)
        return distributed_answer(question, softmax(found, by_count(scales, count, "scale")))
