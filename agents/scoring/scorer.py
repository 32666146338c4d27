"""What every scorer promises: tickets and questions in, raw answers out.

Promise: one `Scores` a ticket, in the order of the tickets. What a scorer returns is a claim, not a
fact: the gate `answers` checks it whole, whichever scorer it came from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol, runtime_checkable

from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a scorer has no answers about one ticket, while it answers about others.

    `reason` is for the record. `is_senders`: the model's server refused what was sent (it said 400, 413 or
    422), so sending it again is of no use; otherwise what the server gave cannot be read.
    """

    reason: str
    is_senders: bool = False


@dataclass(frozen=True, slots=True)
class Scores:
    """One ticket's answers as the model gave them.

    `answers`: question id to a JSON-like answer, `{"urgent": {"type": "noul", "noul": 0.93}}`; a noul's
    number is the probability of true. A question that was not answered is simply absent.
    `truncated`: ids of the questions answered without reading the whole ticket or the whole question.
    `input_tokens`: how many of the ticket's tokens the model read.
    `failure`: why there are no answers about this ticket; it goes to review for that.
    `abstention`: why the model's answers about this ticket are not to be believed, though there are some: it goes to
    review for that.
    `model`: which model answered, where only the answer tells; None means the scorer's own `model`.
    `asked`: questions that were put to the model with fewer options than given, because of a shortlist; their
    answers are to be judged by these.
    """

    answers: Mapping[str, object]
    truncated: frozenset[str] = frozenset()
    input_tokens: int = 0
    failure: Failure | None = None
    abstention: str | None = None
    model: ModelRef | None = None
    asked: Mapping[str, Question] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextCounts:
    """How many tickets' texts a scorer had read before and remembered, and how many it read."""

    repeated: int = 0
    read: int = 0

    def since(self, before: "TextCounts") -> "TextCounts":
        """What came after an earlier count."""
        return TextCounts(self.repeated - before.repeated, self.read - before.read)


class Scorer(Protocol):
    """A model behind a port. Synchronous, and safe to call from several threads at once."""

    @property
    def model(self) -> ModelRef:
        """Which model answers; it stands in every decision record."""
        ...

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """Answer every question about every ticket.

        A ticket's answers depend neither on the other tickets of the batch nor on the order or presence
        of other questions (within 1e-5). Raises ScorerUnavailable if nobody answers at present: the lane
        waits, and no ticket is given up. Raises whatever else the model raises: the lane retries, and then
        gives the ticket to a person.
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """A scorer that holds something open."""

    def close(self) -> None:
        """Break off what is under way and let go. No ticket is scored afterwards."""
        ...


class ScorerError(Exception):
    """The scorer cannot be opened. Not retried: somebody must change a setting or a file.

    `setting` is the setting to look at, `what` is wrong, `remedy` is the way out; the message is one line.
    """

    def __init__(self, what: str, *, remedy: str, setting: str = "TICKETGATE_MODEL") -> None:
        super().__init__(f"{setting}: {what}; {remedy}")
        self.setting, self.what, self.remedy = setting, what, remedy


class ScorerUnavailable(Exception):
    """Nobody answers at present: the server is away, overloaded, or refuses us altogether.

    It says nothing about a ticket, so none may go to review for it: whoever decides waits and asks again.
    `retry_after_s` is how long the server asked us to wait, if it did.
    """

    def __init__(self, what: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


@runtime_checkable
class Remembering(Protocol):
    """What remembers texts that it has read, so that the same text costs nothing again."""

    @property
    def text_counts(self) -> TextCounts:
        """Since it was opened."""
        ...
