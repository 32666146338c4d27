"""Answers read from a file, for tests and for trying out a policy without a model.

The file is one JSON object from ticket id to that ticket's answers. It is read once, when the scorer is
opened; a ticket whose id is not in it has no answers, and so goes to review.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ticketgate.agents.scoring.asked import asked_as_recorded
from ticketgate.agents.scoring.scorer import ScorerError, Scores
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.json_text import read_json
from ticketgate.codecs.files.reading import read_file
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import ChoiceQuestion, Question
from ticketgate.codecs.values.strict import JsonValue

SETTING = "TICKETGATE_SCORER"
REMEDY = "give one JSON object from ticket id to answers"


class FixedScorer:
    """Gives each ticket id its written answers, whatever the questions are."""

    def __init__(self, answers: Mapping[str, Mapping[str, JsonValue]], *, model: ModelRef) -> None:
        self._answers = answers
        self._model = model

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the file; its SHA-256 is the model's hash. Raises ScorerError, naming what is wrong in it."""
        try:
            content = read_file(path, kind="file", remedy="set it to fixed:PATH of a readable JSON file")
            value = read_json(content, source=str(path), remedy=REMEDY, is_our_own=True)
        except FileFault as err:
            where = path if err.line is None else f"{path}:{err.line}"
            raise ScorerError(
                f"fixed answers {where}: {err.what}", remedy=err.remedy, setting=SETTING
            ) from err
        if not isinstance(value, dict):
            raise _unusable(path, "not an object")
        answers: dict[str, Mapping[str, JsonValue]] = {}
        for ticket_id, given in value.items():
            if not isinstance(given, dict):
                raise _unusable(path, f'the answers of "{ticket_id}" are not an object')
            answers[ticket_id] = given
        return cls(answers, model=ModelRef(id="fixed", hash=hashlib.sha256(content).hexdigest()))

    @property
    def model(self) -> ModelRef:
        """`fixed`, with the SHA-256 of the file."""
        return self._model

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """The written answers of each ticket, unchanged, also those to questions nobody asked."""
        given = [self._answers.get(ticket.id, {}) for ticket in tickets]
        shortlisted = {
            name: each
            for name, each in questions.items()
            if isinstance(each, ChoiceQuestion) and each.shortlist is not None
        }
        if not shortlisted:
            return tuple(map(Scores, given))
        return tuple(Scores(answers, asked=asked_as_recorded(shortlisted, answers)) for answers in given)


def _unusable(path: Path, reason: str) -> ScorerError:
    return ScorerError(
        f"fixed answers {path}: {reason}",
        remedy=REMEDY,
        setting=SETTING,
    )
