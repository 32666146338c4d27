"""The taker of each role, made from what a process shares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ticketgate.agents.decide import Decision
from ticketgate.codecs.ticket import Ticket
from ticketgate.store.claims import Claims
from ticketgate.streams.batch import ClaimingTaker
from ticketgate.streams.deciding import Decider, ReportingDecider
from ticketgate.streams.intake import ticket_reader
from ticketgate.streams.readiness import Readiness
from ticketgate.streams.records import RecordWriter
from ticketgate.streams.settings import Settings
from ticketgate.streams.telemetry import Telemetry
from ticketgate.streams.ticket_work import TicketWork
from ticketgate.streams.tracing import Tracing


@dataclass(frozen=True, slots=True, kw_only=True)
class TakerParts:
    """What the takers of a process share."""

    settings: Settings
    claims: Claims
    writer: RecordWriter
    telemetry: Telemetry
    readiness: Readiness
    tracing: Tracing


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


def utc_now() -> datetime:
    """For `decided_at`, which nothing is decided by."""
    return datetime.now(UTC)
