"""The takers of claimed inputs, made from what a process shares; effects_role.py makes the effects'."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from redis.asyncio import Redis
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.store.attempts import AttemptHistory
from ticketgate.store.claims import Claims
from ticketgate.store.clock import redis_now
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.opening.handover import HandOver
from ticketgate.streams.lane.taking.batch import ClaimingTaker
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.intake import proposal_reader, ticket_reader
from ticketgate.streams.lane.taking.records import RecordWriter
from ticketgate.streams.lane.taking.tracing import Tracing
from ticketgate.streams.roles.case_records import CaseWriter
from ticketgate.streams.roles.decide.deciding import Decider, ReportingDecider
from ticketgate.streams.roles.decide.ticket_work import TicketWork
from ticketgate.streams.roles.evidences import Evidences
from ticketgate.streams.roles.propose.proposal_work import JudgedCase, ProposalWork


@dataclass(frozen=True, slots=True, kw_only=True)
class TakerParts:
    """What the takers of a process share."""

    settings: Settings
    redis: Redis
    keys: Keys
    durability: Durability
    hand_over: HandOver
    claims: Claims
    writer: RecordWriter
    telemetry: Telemetry
    readiness: Readiness
    tracing: Tracing
    floor: Floor

    @property
    def clock(self) -> Callable[[], Awaitable[datetime]]:
        """The moment that cases are judged for."""
        return partial(redis_now, self.redis)


def decide_taker(parts: TakerParts, decider: Decider) -> ClaimingTaker[Ticket, Decision]:
    """Tickets to decisions."""
    settings = parts.settings
    return ClaimingTaker(
        claims=parts.claims,
        read=ticket_reader(namespace=settings.namespace, max_bytes=settings.max_ticket_bytes),
        work=TicketWork(ReportingDecider(decider, parts.readiness), parts.writer, parts.telemetry),
        writer=parts.writer,
        telemetry=parts.telemetry,
        now=utc_now,
        tracing=parts.tracing,
    )


def propose_taker(
    parts: TakerParts, catalogue: Catalogue, evidences: Evidences
) -> ClaimingTaker[Proposal, JudgedCase]:
    """Proposals to case decisions."""
    settings = parts.settings
    return ClaimingTaker(
        claims=parts.claims,
        read=proposal_reader(namespace=settings.namespace, max_bytes=settings.max_ticket_bytes),
        work=ProposalWork(
            catalogue=catalogue,
            evidences=evidences,
            history=AttemptHistory(
                parts.redis, parts.keys, ttl=settings.claim_ttl, durability=parts.durability
            ),
            namespace=settings.namespace,
            clock=parts.clock,
            writer=CaseWriter(parts.writer.topics, catalogue, settings.max_record_bytes),
            telemetry=parts.telemetry,
        ),
        writer=parts.writer,
        telemetry=parts.telemetry,
        now=utc_now,
        tracing=parts.tracing,
    )


def utc_now() -> datetime:
    """For `decided_at`, which nothing is decided by."""
    return datetime.now(UTC)
