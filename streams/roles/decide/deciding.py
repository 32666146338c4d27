"""Step 5 of the protocol: owned tickets to decisions, whatever the scorer does.

Promise: `decide_all` gives one decision a ticket. What raises is tried again, first as a batch, then ticket by ticket,
and what still fails is a decision for review: no ticket holds its partition up. A scorer that hangs cannot be tried
again in the same process; `ScorerHung` passes through, and the successor decides the tickets concerned one by one
(careful.py). So does `ScorerUnavailable`: nobody answers at present, and no ticket goes to review for that.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from ticketgate.agents.deciding.decide import Decision, ScorerMisbehavedError
from ticketgate.agents.scoring import ScorerUnavailable
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.verdict import Stage
from ticketgate.streams.config.readiness import SCORER, Readiness

log = logging.getLogger(__name__)

# The second try of a whole batch: a scorer that failed by chance mostly does not fail again.
BATCH_TRIES = 2


class ScorerHung(Exception):
    """The scorer gave no answer within its time. Its thread cannot be ended but with the process.

    `places` are those of the tickets under way in the sequence given to `decide_all`.
    """

    def __init__(self, seconds: float, *, places: Sequence[int] = ()) -> None:
        super().__init__(f"the scorer gave no answer in {seconds:g} s (TICKETGATE_SCORER_TIMEOUT)")
        self.seconds, self.places = seconds, tuple(places)


class Decider(Protocol):
    """Who decides: in the worker the Faust agent (app.py), in tests whatever the test needs."""

    async def decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        """One decision a ticket, in order. Raises what the scorer raises, and `ScorerHung`."""
        ...

    def refuse(self, stage: Stage, reasons: Sequence[str]) -> Decision:
        """A decision for review without inference, under the policy and model in force."""
        ...


class ReportingDecider:
    """A decider that tells /readyz while nobody answers: a lane that tries again is not one that works."""

    def __init__(self, decider: Decider, readiness: Readiness) -> None:
        self._decider, self._readiness = decider, readiness

    async def decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        """As the decider itself."""
        try:
            decisions = await self._decider.decide(tickets)
        except ScorerUnavailable as err:
            self._readiness.wait(SCORER, str(err))
            raise
        self._readiness.work(SCORER)
        return decisions

    def refuse(self, stage: Stage, reasons: Sequence[str]) -> Decision:
        """As the decider itself."""
        return self._decider.refuse(stage, reasons)


async def decide_all(decider: Decider, tickets: Sequence[Ticket]) -> tuple[Decision, ...]:
    """One decision for each ticket, in order.

    Raises `ScorerHung` and `ScorerUnavailable`; whatever else the scorer raises ends in a decision.
    """
    for _ in range(BATCH_TRIES):
        found = await _attempt(decider, tickets, range(len(tickets)))
        if not isinstance(found, Exception):
            return tuple(found)
    return tuple([await _decide_one(decider, tickets, place) for place in range(len(tickets))])


async def _decide_one(decider: Decider, tickets: Sequence[Ticket], place: int) -> Decision:
    found = await _attempt(decider, tickets, [place])
    if isinstance(found, Exception):
        return decider.refuse(Stage.ANSWERS, [f"the scorer gave no answer: {type(found).__name__}"])
    return found[0]


async def _attempt(
    decider: Decider, tickets: Sequence[Ticket], places: Sequence[int]
) -> Sequence[Decision] | Exception:
    if not places:
        return ()
    try:
        decisions = await decider.decide([tickets[place] for place in places])
    except ScorerHung as hung:
        raise ScorerHung(hung.seconds, places=places) from hung
    except ScorerUnavailable:
        raise  # it says nothing about a ticket: the lane waits and opens again
    except Exception as err:  # noqa: BLE001 - a scorer may raise anything, and the ticket ends in review for it
        log.warning("deciding %d tickets failed: %s: %s", len(places), type(err).__name__, err)
        return err
    if len(decisions) != len(places):
        return ScorerMisbehavedError(tickets=len(places), results=len(decisions))
    return decisions
