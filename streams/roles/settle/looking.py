"""Settlements looked at: the signature, the record in review that each is about, and what the policy says.

Promise: what comes out as `Good` is signed by who may settle, about the very record that lies in review, with labels
that the policy in force accepts with the effects that were shown. Nothing is claimed or written here.
Relies on: a broker that answers; while it does not, the lane waits.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from aiokafka import ConsumerRecord
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.settling.console_keys import ConsoleKeys
from ticketgate.agents.settling.judging import Reviewed, judge_settlement
from ticketgate.agents.settling.refusal import Code, Refusal
from ticketgate.agents.settling.signing import refuse_signature
from ticketgate.codecs.records.decision import DECISION_SCHEMA, DecisionRecord, read_decision
from ticketgate.codecs.records.headers import Header, foreign
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.settlement import Action, Settlement, value_digest
from ticketgate.codecs.records.ticket import Ticket, read_ticket
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import decode
from ticketgate.store.claims import Claim
from ticketgate.streams.lane.taking.intake import Reader

log = logging.getLogger(__name__)


class Topics(Protocol):
    """Where records are read again by where they lie (kafka/reading/record_at.py)."""

    async def fetch(self, at: Coordinate) -> ConsumerRecord | None:
        """The committed record at a coordinate, or None where there is none. Raises aiokafka's errors, TimeoutError."""
        ...


@dataclass(frozen=True, slots=True)
class Good:
    """A settlement that may take effect. decision: of what is accepted. passed_on: the producer's headers."""

    settlement: Settlement
    record: DecisionRecord
    decision: Decision | None
    policy: str
    passed_on: tuple[Header, ...]

    @property
    def ticket_claim(self) -> Claim:
        """The claim that the ticket must have for it."""
        record = self.record
        return Claim(record.idempotency_key, record.coordinate, record.fingerprint)


@dataclass(frozen=True, slots=True)
class Bad:
    """A settlement that takes no effect, and why. policy: in force then; None where that was not looked at."""

    settlement: Settlement
    refusal: Refusal
    policy: str | None
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """Looks at settlements. keys, policy: give those in force. clock: the moment that expiry is judged by, Redis' own.
    read_ticket: as the lanes of tickets read them. not_by: pseudonyms that may settle nothing."""

    topics: Topics
    topic_review: str
    keys: Callable[[], ConsoleKeys]
    policy: Callable[[], Policy]
    clock: Callable[[], Awaitable[datetime]]
    read_ticket: Reader[Ticket]
    not_by: Collection[str]

    async def look(self, settlement: Settlement) -> Good | Bad:
        """Raises what the topics and the clock raise."""
        policy = self.policy()
        refused = refuse_signature(settlement, self.keys(), at=await self.clock(), not_by=self.not_by)
        if refused is not None:
            return Bad(settlement, refused, policy.hash)
        found = await self._reviewed(settlement)
        if isinstance(found, Refusal):
            return Bad(settlement, found, policy.hash)
        record, headers = found
        decision: Decision | None = None
        if settlement.action is Action.ACCEPT:
            judged = self._judge(
                settlement, Reviewed(record, await ticket_of(record, self.topics, self.read_ticket)), policy
            )
            if isinstance(judged, Refusal):
                return Bad(settlement, judged, policy.hash, record.tenant)
            decision = judged
        return Good(settlement, record, decision, policy.hash, headers)

    async def _reviewed(self, settlement: Settlement) -> tuple[DecisionRecord, tuple[Header, ...]] | Refusal:
        """The record that it is about, with the producer's headers."""
        at = settlement.review
        found = await self.topics.fetch(at) if at.topic == self.topic_review else None
        if found is None or found.value is None:
            return Refusal(Code.NO_SUCH_RECORD, (f"there is no record at {at}, or no more",))
        if value_digest(found.value) != settlement.review_sha256:
            return Refusal(Code.OTHER_RECORD, (f"the record at {at} is another than the one that was shown",))
        record = settleable(found.value, settlement)
        return record if isinstance(record, Refusal) else (record, foreign(tuple(found.headers)))

    def _judge(self, settlement: Settlement, reviewed: Reviewed, policy: Policy) -> Decision | Refusal:
        try:
            return judge_settlement(settlement, reviewed, policy=policy)
        except Exception as err:
            # A fault of ours must not hold the partition up; nothing is let through for it.
            log.exception("judging settlement %s failed", settlement.id)
            return Refusal(Code.JUDGED_OTHERWISE, (f"judging failed: {type(err).__name__}",))


async def ticket_of(record: DecisionRecord, topics: Topics, read: Reader[Ticket]) -> Ticket | None:
    """The ticket out of its record in review, or, where that has no text, out of its topic; None if nowhere has it.
    Raises what the topics raise."""
    if record.ticket is not None:
        ticket = read_ticket(dict(record.ticket))
        return None if isinstance(ticket, Malformed) else ticket
    found = await topics.fetch(record.coordinate)
    if found is None or found.value is None:
        return None
    again = read(found.value)
    if isinstance(again, Malformed):
        return None
    is_it = (again.key, again.fingerprint) == (record.idempotency_key, record.fingerprint)
    return again.document if is_it else None


def settleable(value: bytes, settlement: Settlement) -> DecisionRecord | Refusal:
    """The record in review with this value, or why it cannot be settled, or not by this settlement."""
    record = read_reviewed(value)
    if record is None:
        what = "a collision, a case and a receipt are looked into and not settled"
        return Refusal(Code.NOT_SETTLEABLE, (f"it is no decision on a ticket: {what}",))
    if (record.idempotency_key, record.ticket_id) != (settlement.key, settlement.ticket_id):
        return Refusal(Code.OTHER_RECORD, ("the record is about another ticket than the settlement names",))
    return record


def read_reviewed(value: bytes) -> DecisionRecord | None:
    """The decision on a ticket that a record of `review` is, if a person may settle it."""
    document = decode(value, max_bytes=max(len(value), 1))
    if not isinstance(document, dict) or document.get("schema") != DECISION_SCHEMA:
        return None
    record = read_decision(document)
    # A collision tells of a ticket under a derived key: what it collided with has the ticket's own.
    is_ticket = not isinstance(record, Malformed) and ":" not in record.idempotency_key
    return record if is_ticket and isinstance(record, DecisionRecord) else None
