"""What contracts share: templates to text, logits to probabilities, probabilities to answers.

Promise: probabilities are worked out in doubles and sum to 1 to the last digits; NaN stays NaN, for the gate `answers`
to see.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from ticketgate.agents.scoring.folder import ModelFolder, first_fault
from ticketgate.agents.scoring.render import render
from ticketgate.agents.scoring.scorer import Failure, ScorerError
from ticketgate.codecs.systemone.answers import ChoiceAnswer, ScoreAnswer, confidence
from ticketgate.codecs.systemone.questions import MAX_OPTIONS, ChoiceQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.strict import JsonValue

PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Put:
    """One question, and to which states of a batch it is put: their places, and what it is called there."""

    question: Question
    to: list[tuple[int, str]]


def each_once(asked: Sequence[Mapping[str, Question]]) -> list[Put]:
    """The questions of a batch, `asked` for each state: one that is the same object is there once."""
    found: dict[int, Put] = {}
    for place, questions in enumerate(asked):
        for name, question in questions.items():
            if id(question) not in found:
                found[id(question)] = Put(question, [])
            found[id(question)].to.append((place, name))
    return list(found.values())


def fill(template: str, *, most: int, **values: JsonValue) -> str:
    """The template with its places filled, in one pass: braces in a ticket's text are text.

    Of each value at most `most` characters are written; of None nothing.
    """

    def text(place: re.Match[str]) -> str:
        return clip(values[place[1]], most) or ""

    return PLACEHOLDER.sub(text, template)


def clip(value: JsonValue, most: int) -> str | None:
    """The value as text, of which there are at most so many characters; None of None."""
    return None if value is None else render(value, most=most)[:most]


def require_places(template: str, places: set[str]) -> str:
    """The template, if it has no other places to fill than these. Raises ValueError."""
    if unknown := set(PLACEHOLDER.findall(template)) - places:
        raise ValueError(f"no such place to fill: {', '.join(sorted(unknown))}")
    return template


class StatementTemplate(BaseModel):
    """A manifest's template of a contract that reads a question as one text, or one an option or level.

    `places` names by field what may be filled in there. `statement`: a question's instructions with one option or
    level, for contracts that read those two together beside the option.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    places: ClassVar[Mapping[str, set[str]]]

    state: str
    noul: str
    noul_true: str
    noul_false: str
    option: str
    described_option: str
    level: str
    statement: str | None = None

    @field_validator("*")
    @classmethod
    def _known_places(cls, text: str | None, info: object) -> str | None:
        places = cls.places.get(getattr(info, "field_name", ""))
        if text is None or places is None:
            raise ValueError("this contract has no such text")
        return require_places(text, places)


class Platt(BaseModel):
    """A noul's calibration: sigmoid(scale * logit + bias)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    scale: float
    bias: float


def sigmoid(x: float) -> float:
    """Without overflow on either side."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    power = math.exp(x) if x == x else x
    return power / (1 + power)


def softmax(logits: NDArray[np.float32], scale: float) -> list[float]:
    """softmax(scale * logits)."""
    powers = np.exp(scale * (logits.astype(np.float64) - float(logits.max())))
    chances: list[float] = (powers / powers.sum()).tolist()
    return chances


def noul_answer(chance: float) -> JsonValue:
    """The answer to a noul whose probability of true is `chance`."""
    return {"type": "noul", "noul": chance}


def distributed_answer(question: ChoiceQuestion | ScoreQuestion, chances: Sequence[float]) -> JsonValue:
    """The answer to a choice or score, from a probability for each option or level in the question's order."""
    by_label = dict(zip(question.labels, chances, strict=True))
    if isinstance(question, ChoiceQuestion):
        choice = max(by_label, key=by_label.__getitem__)  # of equals the earlier
        return {
            "type": "choice",
            "choice": choice,
            "confidence": confidence(ChoiceAnswer(choice, by_label)),
            "probabilities": {**by_label},
        }
    score = math.fsum(level * chance for level, chance in zip(question.levels, chances, strict=True))
    return {
        "type": "score",
        "score": score,
        "confidence": confidence(ScoreAnswer(score, by_label)),
        "legend": dict(zip(question.labels, question.criteria, strict=True)),
        "probabilities": {**by_label},
    }


def by_count(fits: Mapping[str, float], count: int, default: str) -> float:
    """The calibration for so many options: under that number where the manifest has it, else under `default`."""
    return fits.get(str(count), fits[default])


def require_fits(
    fits: Mapping[str, float], default: str, *, least: float, most: float
) -> Mapping[str, float]:
    """The calibration of a type: `default`, and option counts from "2" on; all in the range. Raises ValueError."""
    if default not in fits:
        raise ValueError(f"needs {default}")
    for name, value in fits.items():
        if name != default and not (
            name.isdecimal() and 2 <= int(name) <= MAX_OPTIONS and name == str(int(name))
        ):
            raise ValueError(f"{name} is neither {default} nor a count of options")
        if not least <= value <= most:
            raise ValueError(f"{name} must be from {least:g} to {most:g}, not {value:g}")
    return fits


def option_limit(folder: ModelFolder) -> int:
    """How many options a question may have."""
    return folder.manifest.limits.options or MAX_OPTIONS


def too_many(name: str, count: int, most: int) -> Failure:
    """A question has more options than the model takes."""
    return Failure(
        f"question {quote(name)}: {count} options, and this model takes at most {most}", is_senders=True
    )


def wrong_manifest(folder: ModelFolder, err: ValidationError) -> ScorerError:
    """An error about the part of the manifest that a contract checks, to be raised."""
    return folder.refusal(f"manifest.json: {err.title.removeprefix('_').lower()}: {first_fault(err)}")
