"""The System One protocol on the wire: typed reading of a response, and the shapes of its errors.

Questions are in `questions`, answers in `answers`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ticketgate.codecs.systemone.answers import concentration
from ticketgate.codecs.values.strict import JsonValue

__all__ = ["PATH", "Prediction", "error_body"]

# Where every server of the protocol is asked, below its root.
PATH = "/v1/systemone"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A response `{model, answers, usage}`, to be read by name. What is not there, or of another type, is None.

    For reading alone: nothing here checks that the answers hold together (`check_answers` does).
    """

    response: Mapping[str, JsonValue] = field(repr=False)

    @classmethod
    def of(cls, response: JsonValue) -> Prediction:
        """Whatever a server sent; of what is no object there is nothing to read."""
        return cls(response if isinstance(response, dict) else {})

    @property
    def model(self) -> str | None:
        """The model that answered, as the server calls it."""
        return _text(self.response.get("model"))

    @property
    def answers(self) -> Mapping[str, JsonValue]:
        """The raw answers by question id; empty if there are none."""
        return _object(self.response.get("answers"))

    @property
    def input_tokens(self) -> int | None:
        """How many tokens were read."""
        return self._count("input_tokens")

    @property
    def output_tokens(self) -> int | None:
        """How many tokens were written: 0 of a model that only scores."""
        return self._count("output_tokens")

    def ids(self) -> tuple[str, ...]:
        """The questions that were answered, in the response's order."""
        return tuple(self.answers)

    def choice(self, question_id: str) -> str | None:
        """The label chosen."""
        return _text(self._answer(question_id).get("choice"))

    def noul(self, question_id: str) -> float | None:
        """The probability of true."""
        return _number(self._answer(question_id).get("noul"))

    def score(self, question_id: str) -> float | None:
        """The expected level."""
        return _number(self._answer(question_id).get("score"))

    def confidence(self, question_id: str) -> float | None:
        """How concentrated the distribution is, by the server's formula: not to be compared between servers."""
        return _number(self._answer(question_id).get("confidence"))

    def certainty(self, question_id: str) -> float | None:
        """How concentrated the whole distribution is, worked out from the probabilities: 1 - H(p)/ln n. The same for
        all kinds and servers. Only where a server gave no probabilities is what it says taken."""
        answer = self._answer(question_id)
        chances = [_number(chance) for chance in _object(answer.get("probabilities")).values()]
        if (noul := self.noul(question_id)) is not None:
            chances = [noul, 1 - noul]
        known = [chance for chance in chances if chance is not None and 0 <= chance <= 1]
        if len(known) < 2 or len(known) < len(chances):
            return _number(answer.get("x_certainty"))
        return concentration(known)

    def answer_confidence(self, question_id: str) -> float | None:
        """The probability of the answer reported, at the threshold 0.5: the measure to gate on.

        Worked out from the probabilities; only where a server gave none of them is what it says taken.
        """
        answer = self._answer(question_id)
        chances = [_number(chance) for chance in _object(answer.get("probabilities")).values()]
        known = [chance for chance in chances if chance is not None]
        found: float | None = None
        if (noul := self.noul(question_id)) is not None:
            found = max(noul, 1 - noul)
        elif (choice := self.choice(question_id)) is not None:
            found = _number(_object(answer.get("probabilities")).get(choice))
        elif known and len(known) == len(chances):
            found = max(known)
        if found is None:
            found = _number(answer.get("x_answer_confidence"))
        return _number(answer.get("answer_confidence")) if found is None else found

    def _count(self, name: str) -> int | None:
        count = _object(self.response.get("usage")).get(name)
        return count if isinstance(count, int) and not isinstance(count, bool) else None

    def _answer(self, question_id: str) -> Mapping[str, JsonValue]:
        return _object(self.answers.get(question_id))


def error_body(error_type: str, message: str) -> dict[str, JsonValue]:
    """The body of every error but a 422: `{"detail": {"error_type", "message"}}`."""
    return {"detail": {"error_type": error_type, "message": message}}


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: JsonValue) -> float | None:
    """A finite number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
