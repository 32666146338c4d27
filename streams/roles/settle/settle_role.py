"""The role `settle` put together: claims, what it looks at, what it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.settling.console_keys import ConsoleKeys
from ticketgate.store.lane_state.underway import UnderWays
from ticketgate.store.settlement_claims import SettlementClaims
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.record_at import RecordAt
from ticketgate.streams.lane.taking.intake import settlement_reader, ticket_reader
from ticketgate.streams.roles.settle.looking import Looking
from ticketgate.streams.roles.settle.settle_taker import SettleTaker
from ticketgate.streams.roles.settle.settled_records import SettledWriter
from ticketgate.streams.roles.takers import TakerParts, utc_now


@dataclass(frozen=True, slots=True)
class Settling:
    """What the role is given: the policy in force, and the keys in force that settlements may be signed by."""

    policy: Callable[[], Policy]
    keys: Callable[[], ConsoleKeys]


@dataclass(frozen=True, slots=True)
class SettleRole:
    """What the role has open: `taker` for its lanes, `close` at the end."""

    taker: SettleTaker
    topics: RecordAt

    async def close(self) -> None:
        """Let go of the reader."""
        await self.topics.close()


def open_settle(parts: TakerParts, settling: Settling) -> SettleRole:
    """Open the role, in the loop that it will run in."""
    settings, topics = parts.settings, RecordAt(connection_of(parts.settings))
    author = settings.policy_author
    looking = Looking(
        topics=topics,
        topic_review=settings.topic_review,
        keys=settling.keys,
        policy=settling.policy,
        clock=parts.clock,
        read_ticket=ticket_reader(namespace=settings.namespace, max_bytes=settings.max_ticket_bytes),
        not_by=[author] if settings.settle_by_others and author is not None else [],
    )
    taker = SettleTaker(
        claims=SettlementClaims(parts.redis, parts.keys, ttl=settings.claim_ttl, durability=parts.durability),
        read=settlement_reader(max_bytes=settings.max_ticket_bytes),
        looking=looking,
        note=UnderWays(parts.redis, parts.keys).note,
        mark_committed=parts.claims.mark_committed,
        settled=SettledWriter(
            parts.writer.topics, settings.max_record_bytes, with_ticket=settings.dispatch_with_ticket
        ),
        writer=parts.writer,
        telemetry=parts.telemetry,
        now=utc_now,
        tracing=parts.tracing,
    )
    return SettleRole(taker, topics)
