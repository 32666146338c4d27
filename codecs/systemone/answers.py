"""Answers of the System One protocol: what a scorer says, and how sure it is of it.

Nothing here rounds, and nothing is renormalised: a number is recorded as it came. answer_checks.py has the checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.tagged import tag_non_finite

__all__ = [
    "Answer",
    "ChoiceAnswer",
    "NoulAnswer",
    "ScoreAnswer",
    "answer_confidence",
    "answer_json",
    "certainty",
    "confidence",
    "tag_non_finite",
]


# The reported choice must have the highest probability, exactly: rounding keeps order, so there is nothing
# to tolerate. Equal highest probabilities allow any of them.

# ... and a record as many as fit beside a ticket, however many questions went wrong.
_MAX_REASONS = 64


@dataclass(frozen=True, slots=True)
class NoulAnswer:
    """noul: the probability of true, in 0..1."""

    noul: int | float
    type: Literal["noul"] = "noul"


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """choice: the label reported. probabilities: by label, in the question's order, summing to about 1."""

    choice: str
    probabilities: Mapping[str, int | float]
    type: Literal["choice"] = "choice"

    @property
    def mode(self) -> str:
        """The most probable label; of equals the earlier in the question's order."""
        return max(self.probabilities, key=lambda label: self.probabilities[label])


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """score: the expected level. probabilities: by level, "0" first, summing to about 1."""

    score: int | float
    probabilities: Mapping[str, int | float]
    type: Literal["score"] = "score"

    @property
    def mode(self) -> int:
        """The most probable level; of equals the lower."""
        return int(max(self.probabilities, key=lambda level: self.probabilities[level]))


Answer: TypeAlias = NoulAnswer | ChoiceAnswer | ScoreAnswer


def answer_confidence(answer: Answer, threshold: float = 0.5) -> float:
    """The probability of what is reported: the one measure that means the same for all kinds, for gating.

    noul: of the side that `threshold` selects (at or above it: true); choice: of the choice; score: of the
    most probable level. `threshold` is noul's alone.
    """
    match answer:
        case NoulAnswer():
            return answer.noul if answer.noul >= threshold else 1 - answer.noul
        case ChoiceAnswer():
            return answer.probabilities[answer.choice]
        case ScoreAnswer():
            return answer.probabilities[str(answer.mode)]
        case _:
            assert_never(answer)


def confidence(answer: Answer) -> float | None:
    """The protocol's `confidence`, for the wire only: it means another thing for each kind and server.

    choice: (n·pmax - 1)/(n - 1). score: 1 - Σ pᵢ·|i - mode| / mean|i - (n-1)/2|. noul has none. Kept within
    0..1, which sums that were rounded can leave by a little.
    """
    if isinstance(answer, NoulAnswer):
        return None
    chances = list(answer.probabilities.values())
    n = len(chances)
    if isinstance(answer, ChoiceAnswer):
        value = (n * max(chances) - 1) / (n - 1)
    else:
        spread = math.fsum(p * abs(level - answer.mode) for level, p in enumerate(chances))
        uniform = math.fsum(abs(level - (n - 1) / 2) for level in range(n)) / n
        value = 1 - spread / uniform
    return min(1.0, max(0.0, value))


def certainty(answer: Answer) -> float:
    """How concentrated the whole distribution is: 1 - H(p)/ln n, 1 where one answer has it all, 0 where all are alike.

    `confidence` of a choice looks at the highest probability alone: [.52, .48, 0] and [.52, .24, .24] have .28 both;
    their certainty is .37 and .07. Of a noul the two sides are the distribution.
    """
    match answer:
        case NoulAnswer():
            return concentration([answer.noul, 1 - answer.noul])
        case ChoiceAnswer() | ScoreAnswer():
            return concentration([*answer.probabilities.values()])
        case _:
            assert_never(answer)


def concentration(chances: Sequence[int | float]) -> float:
    """1 - H(p)/ln n of two probabilities or more, kept within 0..1."""
    entropy = -math.fsum(chance * math.log(chance) for chance in chances if chance > 0)
    return min(1.0, max(0.0, 1 - entropy / math.log(len(chances))))


def answer_json(question: Question, answer: Answer, *, is_plain: bool = False) -> dict[str, JsonValue]:
    """The answer as the protocol writes it, with our `x_answer_confidence` at the threshold 0.5 and `x_certainty`.

    is_plain: with `answer_confidence` besides, which the protocol would have written with x_ before it.
    Raises ValueError if the answer is of another kind than the question.
    """
    record: dict[str, JsonValue]
    if isinstance(question, NoulQuestion) and isinstance(answer, NoulAnswer):
        record = {"type": "noul", "noul": answer.noul}
    elif isinstance(question, ChoiceQuestion) and isinstance(answer, ChoiceAnswer):
        record = {
            "type": "choice",
            "choice": answer.choice,
            "confidence": confidence(answer),
            "probabilities": dict(answer.probabilities),
        }
    elif isinstance(question, ScoreQuestion) and isinstance(answer, ScoreAnswer):
        record = {
            "type": "score",
            "score": answer.score,
            "confidence": confidence(answer),
            "legend": dict(zip(question.labels, question.criteria, strict=True)),
            "probabilities": dict(answer.probabilities),
        }
    else:
        raise ValueError(f"an answer of type {answer.type} to a question of type {question.type}")
    of_answer = answer_confidence(answer)
    plain: dict[str, JsonValue] = {"answer_confidence": of_answer} if is_plain else {}
    return record | plain | {"x_answer_confidence": of_answer, "x_certainty": certainty(answer)}
