"""`ticketgate worker` that hangs where no time limit reaches it, once a ticket says STUCK; with short limits.

STUCK_AT says where: `lock` (a scorer that never gives the interpreter's lock back), `loop` (code in the event loop that
never returns), `step` (a step that waits for what never comes).
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.store.claims import Claims
from ticketgate.streams.cli import main
from ticketgate.streams.lane import lane
from ticketgate.streams.process import loop_guard, preflight

from tests.support.faulty_worker import FaultyScorer

LONG_S = 3_600
# Long enough for a loop on a busy machine to go round.
LIMIT_S = 8
STUCK_AT = os.environ.get("STUCK_AT", "")
claim = Claims.claim


class StuckScorer(FaultyScorer):
    """Holds the interpreter's lock."""

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        if STUCK_AT == "lock" and any("STUCK" in str(ticket.state) for ticket in tickets):
            ctypes.PyDLL(None).sleep(LONG_S)
        return super().score(tickets, questions)


async def stuck_claim(self: Claims, wanted: Sequence[Any], **named: Any) -> Any:
    """Claim, and then hang."""
    claimed = await claim(self, wanted, **named)
    if wanted and STUCK_AT == "loop":
        time.sleep(LONG_S)  # noqa: ASYNC251 - the fault
    if wanted and STUCK_AT == "step":
        await asyncio.Event().wait()
    return claimed


def shorten_limits() -> None:
    loop_guard.__dict__["LOOP_LIMIT_S"] = LIMIT_S
    lane.__dict__["TAKE_LIMIT_S"] = LIMIT_S


preflight.__dict__["require_scorer"] = lambda settings: StuckScorer()
Claims.claim = stuck_claim  # type: ignore[method-assign,assignment]
shorten_limits()

if __name__ == "__main__":
    main()
