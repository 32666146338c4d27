"""`ticketgate worker` with a scorer that misbehaves, for the words that it finds in a ticket.

RAISE raises, NONSENSE gives answers that are none, HANG never returns, FLAKY raises the first time in a process, SLOW
takes SLOW_S for each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.decision import ModelRef
from ticketgate.codecs.questions import Question
from ticketgate.codecs.ticket import Ticket
from ticketgate.streams import preflight
from ticketgate.streams.cli import main

SLOW_S = 0.25


class FaultyScorer:
    """Says yes to review and billing and no to all else, unless a ticket asks for a fault."""

    model = ModelRef(id="faulty", hash="0")

    def __init__(self) -> None:
        self.has_raised = False

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        texts = [str(ticket.state) for ticket in tickets]
        if any("HANG" in text for text in texts):
            while True:
                time.sleep(1)
        if any("FLAKY" in text for text in texts) and not self.has_raised:
            self.has_raised = True
            raise RuntimeError("once")
        if any("RAISE" in text for text in texts):
            raise RuntimeError("always")
        time.sleep(SLOW_S * sum("SLOW" in text for text in texts))
        return [Scores(self.answers(text, questions)) for text in texts]

    def answers(self, text: str, questions: Mapping[str, Question]) -> Mapping[str, object]:
        if "NONSENSE" in text:
            return {question: {"type": "noul", "noul": float("nan")} for question in questions}
        yes = {"review", "billing"}
        return {question: {"type": "noul", "noul": 0.9 if question in yes else 0.1} for question in questions}


# Where the worker looks it up.
preflight.__dict__["require_scorer"] = lambda settings: FaultyScorer()

if __name__ == "__main__":
    main()
