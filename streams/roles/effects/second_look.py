"""The second look at a case, just before its effect is sent: evidence looked up anew, every gate again.

Promise: a permission revoked, a request superseded or a precondition broken since the decision stops the effect. A
policy's effect has no such gates: its policy let it through, and nobody is asked again.
See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from ticketgate.agents.effects.ledger import Order, Settlement
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.judge import judge_again
from ticketgate.codecs.records.proposal import read_judged_proposal
from ticketgate.codecs.records.receipt import EffectState, JudgedAgain
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.roles.evidences import Evidences

log = logging.getLogger(__name__)

NEXT_STEP = "nothing is sent; a person looks why the case cannot be judged here"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """catalogue, evidences: None where the funnel file has none. clock: the moment to judge for, which is Redis'."""

    catalogue: Catalogue | None
    evidences: Evidences | None
    clock: Callable[[], Awaitable[datetime]]
    telemetry: Telemetry

    async def at(self, order: Order, confirmation: str | None) -> Settlement | None:
        """How the effect is stopped, and on which evidence; None lets it go. confirmation: the one that it used up.
        Raises LookupUnavailable and redis-py's errors."""
        if order.proposal is None:
            return None
        if self.catalogue is None or self.evidences is None:
            return _cannot("no_catalogue")
        proposal = read_judged_proposal(order.proposal)
        if isinstance(proposal, Malformed):
            return _cannot(f"proposal_unreadable:{proposal.reason}")
        (evidence,) = await self.evidences.of([proposal])
        at = await self.clock()
        try:
            verdict = judge_again(
                proposal,
                catalogue=self.catalogue,
                evidence=evidence,
                at=at,
                confirmation=confirmation,
                observe=self.telemetry.gate_later,
            )
        except Exception as err:
            # A fault of ours must not hold the partition up; nothing is let through for it.
            log.exception("judging %s again failed", order.subject)
            return _cannot(f"judging failed: {type(err).__name__}")
        if verdict is None:
            return None
        return stopped(verdict, JudgedAgain(evidence.to_json(), at))


def stopped(verdict: Verdict, judged_again: JudgedAgain | None = None) -> Settlement:
    """How an effect that is not sent is settled. judged_again: what the gates saw, where it was they who stopped it."""
    return Settlement(state=EffectState.REJECTED, verdict=verdict, judged_again=judged_again)


def _cannot(reason: str) -> Settlement:
    return stopped(Verdict(Status.REVIEW, Stage.TOOL_CATALOGUE, (reason,), NEXT_STEP))
