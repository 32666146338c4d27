"""What is told of settlements: a `settled/1` for each, and the decision in `dispatch` of what was accepted.

Promise: no record is larger than the limit. A decision that would be is not written at all: its settlement is refused
before anything is claimed for it. The decision has the person's labels; the model's answers stand in it untouched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.settling.judging import effects_of
from ticketgate.agents.settling.refusal import Code, Refusal
from ticketgate.codecs.records.decision import DecisionRecord, SettledByPerson
from ticketgate.codecs.records.headers import (
    COORDINATE,
    IDEMPOTENCY_KEY,
    SCHEMA,
    SETTLES,
    Header,
    decision_headers,
)
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.settled import SETTLED_SCHEMA, Outcome, SettledRecord
from ticketgate.codecs.records.settlement import Action
from ticketgate.codecs.verdict import Verdict
from ticketgate.store.claims import Claim
from ticketgate.streams.lane.taking.records import OutputTopics, size
from ticketgate.streams.lane.transaction import Outgoing
from ticketgate.streams.roles.settle.looking import Bad, Good

PERSON_NEXT_STEP = (
    "the effects may be carried out: a person selected these labels, and the policy's rules hold for them"
)
# Of a refusal that could name each of thousands of labels.
MOST_REASONS = 20

OUTCOMES = {Action.ACCEPT: Outcome.ACCEPTED, Action.REJECT: Outcome.REJECTED, Action.RETURN: Outcome.RETURNED}


@dataclass(frozen=True, slots=True)
class SettledWriter:
    """Writes what is told. `with_ticket`: whether decisions in dispatch carry the ticket."""

    topics: OutputTopics
    max_bytes: int
    with_ticket: bool

    def dispatched(self, good: Good, claim: Claim, *, at: datetime) -> Outgoing | Refusal | None:
        """The decision that an accepted settlement leads to; None for any other, a refusal if it would be too large."""
        if good.decision is None:
            return None
        record = self._decision(good, good.decision, claim, at)
        sent = Outgoing(
            topic=self.topics.dispatch,
            key=record.ticket_id.encode(),
            value=record.encode(),
            headers=(*good.passed_on, *decision_headers(record), _settles(good)),
        )
        if size(sent) <= self.max_bytes:
            return sent
        return Refusal(
            Code.TOO_LARGE, ("the decision would exceed the broker's limit; the ticket can only be rejected",)
        )

    def settled(self, good: Good, claim: Claim, *, at: datetime) -> Outgoing:
        """That a settlement took effect. What was accepted has its claim in dispatch; else it is here."""
        outcome = OUTCOMES[good.settlement.action]
        record = self._record(
            Bad(good.settlement, _NONE, good.policy, good.record.tenant), claim, at, outcome
        )
        headers = (
            _told(record)
            if outcome is Outcome.ACCEPTED
            else (*decision_headers(record, schema=SETTLED_SCHEMA), _settles(good))
        )
        return self._fitting(record, headers)

    def refused(self, bad: Bad, claim: Claim, *, at: datetime, owner: Coordinate | None = None) -> Outgoing:
        """That a settlement took no effect. owner: the settlement that was before it."""
        outcome = Outcome.VOID if owner is None else Outcome.ALREADY_SETTLED
        record = replace(self._record(bad, claim, at, outcome), owner=owner)
        return self._fitting(record, _told(record))

    def _decision(self, good: Good, decision: Decision, claim: Claim, at: datetime) -> DecisionRecord:
        settlement, reviewed = good.settlement, good.record
        verdict = Verdict(decision.verdict.status, decision.verdict.stage, (), PERSON_NEXT_STEP)
        return replace(
            reviewed,
            verdict=verdict,
            selected=decision.selected,
            violations=(),
            policy=decision.policy,
            effects=effects_of(decision, settlement.key),
            idempotency_key=claim.key,
            fingerprint=claim.fingerprint,
            coordinate=claim.coordinate,
            decided_at=at,
            ticket=reviewed.ticket if self.with_ticket else None,
            settled=SettledByPerson(
                settlement=settlement.id,
                by=settlement.by,
                at=settlement.at,
                review=settlement.review,
                review_sha256=settlement.review_sha256,
                reviewed=reviewed.verdict,
                selected=reviewed.selected,
            ),
        )

    def _record(self, told: Bad, claim: Claim, at: datetime, outcome: Outcome) -> SettledRecord:
        settlement, refusal = told.settlement, told.refusal
        return SettledRecord(
            id=settlement.id,
            ticket_id=settlement.ticket_id,
            tenant=told.tenant,
            key=settlement.key,
            outcome=outcome,
            code="" if outcome.takes_effect else str(refusal.code),
            reasons=() if outcome.takes_effect else refusal.reasons[:MOST_REASONS],
            action=settlement.action,
            labels=settlement.labels,
            review=settlement.review,
            review_sha256=settlement.review_sha256,
            why=settlement.why,
            by=settlement.by,
            at=settlement.at,
            policy=told.policy,
            idempotency_key=claim.key,
            fingerprint=claim.fingerprint,
            coordinate=claim.coordinate,
            decided_at=at,
        )

    def _fitting(self, record: SettledRecord, headers: tuple[Header, ...]) -> Outgoing:
        sent = Outgoing(self.topics.settled, record.ticket_id.encode(), record.encode(), headers)
        if size(sent) <= self.max_bytes:
            return sent
        # Its settlement lies where its coordinate says.
        return replace(sent, value=replace(record, labels=(), why="", reasons=record.reasons[:1]).encode())


_NONE = Refusal(Code.SET_ASIDE, ())


def _told(record: SettledRecord) -> tuple[Header, ...]:
    """Without a fingerprint: no claim rests on it."""
    given = (
        (IDEMPOTENCY_KEY, record.idempotency_key),
        (COORDINATE, record.coordinate),
        (SCHEMA, SETTLED_SCHEMA),
    )
    return tuple((name, str(value).encode()) for name, value in given)


def _settles(good: Good) -> Header:
    return (SETTLES, good.ticket_claim.encode().encode())
