"""What every scorer promises: tickets and questions in, raw answers out.

Promise: one `Scores` a ticket, in the order of the tickets. What a scorer returns is a claim, not a
fact: the gate `answers` checks it whole, whichever scorer it came from (DESIGN section 5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ticketgate.codecs.decision import ModelRef
from ticketgate.codecs.questions import Question
from ticketgate.codecs.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Scores:
    """One ticket's answers as the model gave them.

    `answers`: question id to a JSON-like answer, `{"urgent": {"type": "noul", "noul": 0.93}}`; a noul's
    number is the probability of true. A question that was not answered is simply absent.
    `truncated`: ids of the questions answered without reading the whole ticket or the whole question.
    `input_tokens`: how many of the ticket's tokens the model read.
    """

    answers: Mapping[str, object]
    truncated: frozenset[str] = frozenset()
    input_tokens: int = 0


class Scorer(Protocol):
    """A model behind a port. Synchronous, and safe to call from several threads at once."""

    @property
    def model(self) -> ModelRef:
        """Which model answers; it stands in every decision record."""
        ...

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """Answer every question about every ticket.

        A ticket's answers depend neither on the other tickets of the batch nor on the order or presence
        of other questions (within 1e-5). Raises whatever the model raises: the lane retries.
        """
        ...


class ScorerError(Exception):
    """The scorer cannot be opened. Not retried: somebody must change a setting or a file.

    `setting` is the setting to look at, `what` is wrong, `remedy` is the way out; the message is one line.
    """

    def __init__(self, what: str, *, remedy: str, setting: str = "TICKETGATE_MODEL") -> None:
        super().__init__(f"{setting}: {what}; {remedy}")
        self.setting, self.what, self.remedy = setting, what, remedy
