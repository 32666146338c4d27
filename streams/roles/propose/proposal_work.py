"""What a lane does with proposals: evidence looked up, the gates of the funnel, the attempts before.

Promise: one outcome a proposal. An attempt is written down before its verdict is committed, so that a budget counts
every attempt that may have been committed. While nobody answers a look-up, nothing is decided and the lane waits.
See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Evidence
from ticketgate.agents.funnel.history import CaseBook
from ticketgate.agents.funnel.judge import Judged, judge
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.attempts import AttemptHistory, case_key
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import GateSaid, Telemetry
from ticketgate.streams.lane.taking.contention import AttemptsContested
from ticketgate.streams.lane.taking.intake import Arrival
from ticketgate.streams.lane.transaction import Outgoing
from ticketgate.streams.roles.case_records import CaseWriter
from ticketgate.streams.roles.evidences import Evidences

log = logging.getLogger(__name__)

# Another lane writes to the same case between reading and recording; each round has one winner at least.
MOST_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """How one attempt ended, on which evidence, and what each gate said. A collision was neither looked up nor
    judged."""

    verdict: Verdict
    judged: Judged | None = None
    evidence: Evidence | None = None
    gates: Sequence[GateSaid] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalWork:
    """The `Work` of the role `propose`. clock: the moment to judge for, which is Redis' and no worker's."""

    catalogue: Catalogue
    evidences: Evidences
    history: AttemptHistory
    namespace: str
    clock: Callable[[], Awaitable[datetime]]
    writer: CaseWriter
    telemetry: Telemetry

    async def decide(
        self, arrivals: Sequence[Arrival[Proposal]], *, token: LaneToken
    ) -> Sequence[JudgedCase]:
        """One outcome a proposal, in order. Raises LookupUnavailable, and errors of the store."""
        if not arrivals:
            return ()
        evidence = await self.evidences.of([arrival.document for arrival in arrivals])

        def judge_all(book: CaseBook, at: datetime) -> list[JudgedCase]:
            return [
                self._judge(arrival, found, book, at)
                for arrival, found in zip(arrivals, evidence, strict=True)
            ]

        return await self._recorded(arrivals, judge_all, token)

    async def give_up(
        self, arrivals: Sequence[Arrival[Proposal]], objection: str, *, token: LaneToken
    ) -> Sequence[JudgedCase]:
        """To review, neither looked up nor judged. The attempt counts, as one whose judging failed does."""

        def refuse_all(book: CaseBook, at: datetime) -> list[JudgedCase]:
            return [self._refuse(arrival, objection, book) for arrival in arrivals]

        return await self._recorded(arrivals, refuse_all, token)

    async def _recorded(
        self,
        arrivals: Sequence[Arrival[Proposal]],
        judge_all: Callable[[CaseBook, datetime], list[JudgedCase]],
        token: LaneToken,
    ) -> Sequence[JudgedCase]:
        """The outcomes, once the attempts stand in their cases' history."""
        cases = [case_key(self.namespace, arrival.document) for arrival in arrivals]
        for _ in range(MOST_ROUNDS):
            at = await self.clock()
            book = CaseBook(self.namespace, await self.history.read(cases))
            outcomes = judge_all(book, at)
            if not await self.history.record(book.news(), token=token):
                return outcomes
        raise AttemptsContested

    def collided(self, arrival: Arrival[Proposal], owner: Coordinate) -> JudgedCase:
        """To review, without judging."""
        reason = f"this attempt was made before and said something else, at {owner}"
        return JudgedCase(
            Verdict(Status.REVIEW, Stage.IDENTITY, (reason,), "a person compares the two attempts")
        )

    def set_aside(self, arrival: Arrival[Proposal], reason: str) -> JudgedCase:
        """To review, without judging; like a collision it is no attempt."""
        return JudgedCase(Verdict(Status.REVIEW, Stage.IDENTITY, (reason,), "a person decides"))

    def write(
        self, arrival: Arrival[Proposal], outcome: JudgedCase, *, key: IdempotencyKey, at: datetime
    ) -> Sequence[Outgoing]:
        """The case's decision, and its receipt."""
        return self.writer.write(
            arrival,
            outcome.verdict,
            judged=outcome.judged,
            evidence=outcome.evidence,
            key=key,
            at=at,
        )

    def write_bare(
        self, arrival: Arrival[Proposal], outcome: JudgedCase, *, key: IdempotencyKey, at: datetime
    ) -> Sequence[Outgoing]:
        """The case's decision without its call, its evidence and the producer's headers."""
        return [self.writer.bare(arrival, outcome.verdict, key=key, at=at)]

    def count(self, outcomes: Sequence[JudgedCase]) -> None:
        """Count verdicts, repairs, and what each gate said: once a response, however often it was judged for it."""
        for outcome in outcomes:
            self.telemetry.judged(outcome.verdict)
            for stage, said in outcome.gates:
                self.telemetry.gate_outcome(stage, said)
            if outcome.judged is not None and outcome.judged.repair is not None:
                repair = outcome.judged.repair
                self.telemetry.repair(repair.stage, repair.stop_reason or "granted")

    def _judge(
        self, arrival: Arrival[Proposal], evidence: Evidence, book: CaseBook, at: datetime
    ) -> JudgedCase:
        proposal, coordinate = arrival.document, arrival.claim.coordinate
        said: list[GateSaid] = []
        try:
            judged = judge(
                proposal,
                catalogue=self.catalogue,
                evidence=evidence,
                at=at,
                namespace=self.namespace,
                committed=book.before(proposal, coordinate),
                observe=self.telemetry.gate_into(said),
            )
        except Exception as err:
            # A fault of ours must not hold the partition up; nothing is let through for it.
            log.exception("judging %s failed", coordinate)
            return self._refuse(arrival, f"judging failed: {type(err).__name__}", book)
        book.add(proposal, coordinate, judged.verdict, judged.repair)
        return JudgedCase(judged.verdict, judged, evidence, said)

    def _refuse(self, arrival: Arrival[Proposal], reason: str, book: CaseBook) -> JudgedCase:
        verdict = Verdict(Status.REVIEW, Stage.POLICY, (reason,), "a person decides")
        # It counts: what comes after it must not pass for the repair of an attempt before.
        book.add(arrival.document, arrival.claim.coordinate, verdict)
        return JudgedCase(verdict)
