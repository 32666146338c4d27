"""Step 5 of the protocol: owned tickets to decisions, whatever the scorer does.

Promise: `decide_all` gives one decision a ticket. What raises or takes too long is tried again, first as a batch,
then ticket by ticket, and what still fails is a decision for review: no ticket holds its partition up.
Source: DESIGN section 4, step 5.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from ticketgate.agents.decide import Decision
from ticketgate.codecs.ticket import Ticket
from ticketgate.codecs.verdict import Stage

log = logging.getLogger(__name__)

# The second try of a whole batch: a scorer that failed by chance mostly does not fail again.
BATCH_TRIES = 2


class Decider(Protocol):
    """Who decides: in the worker the Faust agent (app.py), in tests whatever the test needs."""

    async def decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        """One decision a ticket, in order. Raises what the scorer raises."""
        ...

    def refuse(self, stage: Stage, reasons: Sequence[str]) -> Decision:
        """A decision for review without inference, under the policy and model in force."""
        ...


async def decide_all(
    decider: Decider, tickets: Sequence[Ticket], *, timeout_s: float
) -> tuple[Decision, ...]:
    """One decision for each ticket, in order. Only cancellation is raised."""
    if not tickets:
        return ()
    for _ in range(BATCH_TRIES):
        decisions = await _attempt(decider, tickets, timeout_s)
        if not isinstance(decisions, Exception):
            return tuple(decisions)
    return tuple([await _decide_one(decider, ticket, timeout_s) for ticket in tickets])


async def _decide_one(decider: Decider, ticket: Ticket, timeout_s: float) -> Decision:
    decisions = await _attempt(decider, [ticket], timeout_s)
    if isinstance(decisions, Exception):
        return decider.refuse(Stage.ANSWERS, [f"the scorer gave no answer: {type(decisions).__name__}"])
    return decisions[0]


async def _attempt(
    decider: Decider, tickets: Sequence[Ticket], timeout_s: float
) -> Sequence[Decision] | Exception:
    try:
        async with asyncio.timeout(timeout_s):
            decisions = await decider.decide(tickets)
    except Exception as err:  # noqa: BLE001 - a scorer may raise anything, and the ticket ends in review for it
        log.warning("deciding %d tickets failed: %s: %s", len(tickets), type(err).__name__, err)
        return err
    if len(decisions) != len(tickets):
        return ValueError(f"{len(decisions)} decisions for {len(tickets)} tickets")
    return decisions
