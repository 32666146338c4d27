"""What the outcomes of cases and effects look like on the wire: case decisions and receipts as records to send.

Promise: no record is larger than the limit. What would be is sent without its text, to `review`, and lets no effect
through. See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ticketgate.agents.effects.ledger import Command
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Evidence, World
from ticketgate.agents.funnel.judge import Judged
from ticketgate.codecs.records.case_decision import CASE_DECISION_SCHEMA, CaseDecision, ProposedCall
from ticketgate.codecs.records.headers import Header, decision_headers, foreign, record_headers
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey
from ticketgate.codecs.records.pieces import CatalogueRef, Effect
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.receipt import RECEIPT_SCHEMA, DecisionReceipt, EffectReceipt
from ticketgate.codecs.records.request import Request
from ticketgate.codecs.records.signed import digested
from ticketgate.codecs.verdict import Status, Verdict
from ticketgate.streams.lane.taking.intake import Arrival
from ticketgate.streams.lane.taking.records import TOO_LARGE, OutputTopics, size
from ticketgate.streams.lane.transaction import Outgoing

# Of a verdict whose record is too large, as it can name each of thousands of fields.
MOST_REASONS = 20

LEFT_OUT = "the evidence of the second look would exceed the broker's limit, so it is left out here"

# For what was never looked up.
NO_EVIDENCE = Evidence(authority=None, world=World())
# An effect that nothing dispatched, which only a rebuilt ledger has.
NOWHERE = Coordinate("none", 0, 0)


@dataclass(frozen=True, slots=True)
class CaseWriter:
    """Writes case decisions and their receipts, none above `max_bytes`."""

    topics: OutputTopics
    catalogue: Catalogue
    max_bytes: int

    def write(
        self,
        arrival: Arrival[Proposal],
        verdict: Verdict,
        *,
        judged: Judged | None,
        evidence: Evidence | None,
        key: IdempotencyKey,
        at: datetime,
    ) -> list[Outgoing]:
        """The decision, and where the call was judged its receipt. at: where that does not say when."""
        record = self._decision(arrival, verdict, judged, evidence or NO_EVIDENCE, key, at)
        sent, record = self._fitting(record, foreign(arrival.headers))
        if judged is None:
            return [sent]
        receipt = replace(
            judged.decision,
            verdict=record.verdict,
            idempotency_key=key,
            fingerprint=record.fingerprint,
            source=record.coordinate,
        )
        return [sent, self._receipt(receipt, record)]

    def bare(
        self, arrival: Arrival[Proposal], verdict: Verdict, *, key: IdempotencyKey, at: datetime
    ) -> Outgoing:
        """A decision for review on a case that was not judged, with nothing of the proposal but its names."""
        record = self._decision(arrival, verdict, None, NO_EVIDENCE, key, at)
        return self._outgoing(replace(record, proposal=None), ())

    def _decision(
        self,
        arrival: Arrival[Proposal],
        verdict: Verdict,
        judged: Judged | None,
        evidence: Evidence,
        key: IdempotencyKey,
        at: datetime,
    ) -> CaseDecision:
        proposal = arrival.document
        command = None if judged is None else judged.command
        decision = None if judged is None else judged.decision
        unpublished = CatalogueRef(self.catalogue.name, self.catalogue.version, "")
        return CaseDecision(
            case_id=proposal.case_id,
            attempt=proposal.attempt,
            tenant=proposal.tenant,
            verdict=verdict,
            tool=None if decision is None else decision.tool,
            arguments={} if decision is None else decision.arguments,
            catalogue=unpublished if decision is None else decision.catalogue,
            evidence=evidence.to_json(),
            model=proposal.model,
            effects=()
            if judged is None or command is None
            else (Effect(command.tool, command.arguments, command.key, judged.confirmations),),
            result={} if decision is None else decision.result,
            repair=None if judged is None else judged.repair,
            idempotency_key=key,
            fingerprint=arrival.claim.fingerprint,
            coordinate=arrival.claim.coordinate,
            decided_at=at if decision is None or decision.at is None else decision.at,
            proposal=ProposedCall(
                call=proposal.call, request=proposal.request, signed=digested(proposal.signed)
            ),
        )

    def _fitting(self, record: CaseDecision, passed_on: tuple[Header, ...]) -> tuple[Outgoing, CaseDecision]:
        """The record, or the largest lesser form of it that the limit takes; as sent, and as a value."""
        sent = self._outgoing(record, passed_on)
        for form, headers in _lesser(record, passed_on):
            if size(sent) <= self.max_bytes:
                break
            sent, record = self._outgoing(form, headers), form
        return sent, record

    def _outgoing(self, record: CaseDecision, passed_on: tuple[Header, ...]) -> Outgoing:
        return Outgoing(
            topic=self._topic(record.verdict.status),
            key=record.case_id.encode(),
            value=record.encode(),
            headers=passed_on + decision_headers(record, schema=CASE_DECISION_SCHEMA),
        )

    def _receipt(self, receipt: DecisionReceipt, record: CaseDecision) -> Outgoing:
        sent = Outgoing(
            topic=self.topics.receipts,
            key=receipt.case_id.encode(),
            value=receipt.encode(),
            headers=decision_headers(record, schema=RECEIPT_SCHEMA),
        )
        if size(sent) <= self.max_bytes:
            return sent
        asked = Request(operation=receipt.request.operation, actor_id=receipt.request.actor_id)
        lesser = replace(receipt, arguments={}, request=asked, verdict=_cut(receipt.verdict))
        return replace(sent, value=lesser.encode())

    def _topic(self, status: Status) -> str:
        if status is Status.ACCEPT:
            return self.topics.dispatch
        return self.topics.repairs if status is Status.REPAIR else self.topics.review


def _lesser(
    record: CaseDecision, passed_on: tuple[Header, ...]
) -> Iterator[tuple[CaseDecision, tuple[Header, ...]]]:
    """Ever less of the record, for a person."""
    verdict = _cut(record.verdict)
    moved = Verdict(
        Status.REVIEW, verdict.stage, (*verdict.reasons, TOO_LARGE), "a person looks up the proposal"
    )
    bare = replace(record, verdict=moved, effects=(), result={}, repair=None, arguments={}, proposal=None)
    yield bare, passed_on
    least = replace(moved, reasons=(TOO_LARGE,))
    yield replace(bare, verdict=least, evidence=NO_EVIDENCE.to_json()), ()


def _cut(verdict: Verdict) -> Verdict:
    if len(verdict.reasons) <= MOST_REASONS:
        return verdict
    more = f"and {len(verdict.reasons) - MOST_REASONS} more"
    return replace(verdict, reasons=(*verdict.reasons[:MOST_REASONS], more))


@dataclass(frozen=True, slots=True)
class ReceiptWriter:
    """Writes what is told of an effect."""

    topics: OutputTopics
    max_bytes: int

    def effect(self, receipt: EffectReceipt) -> Sequence[Outgoing]:
        """The receipt; and a copy to `review` where a person has to look: its verdict is not `accept`."""
        source = receipt.source or NOWHERE
        command = Command(receipt.tool, receipt.arguments, receipt.idempotency_key)
        headers = record_headers(
            # Of this step, and of this record that asked for the effect: others may ask for the same.
            idempotency_key=IdempotencyKey(
                f"{receipt.idempotency_key}:{receipt.sequence}:{receipt.effect_state}:{source}"
            ),
            fingerprint=command.content,
            coordinate=source,
            schema=RECEIPT_SCHEMA,
        )
        sent = Outgoing(
            topic=self.topics.receipts,
            key=receipt.idempotency_key.encode(),
            value=receipt.encode(),
            headers=headers,
        )
        for form in _lesser_of_effect(receipt):
            if size(sent) <= self.max_bytes:
                break
            sent = replace(sent, value=form.encode())
        if receipt.verdict is None or receipt.verdict.status is Status.ACCEPT:
            return [sent]
        return [sent, replace(sent, topic=self.topics.review, key=receipt.subject.encode())]


def _lesser_of_effect(receipt: EffectReceipt) -> Iterator[EffectReceipt]:
    """Ever less of a receipt. A ledger is rebuilt without what is left out, which others gave and of any size."""
    bare = replace(receipt, state={})
    yield bare
    if receipt.verdict is not None and receipt.judged_again is not None:
        verdict = _cut(receipt.verdict)
        yield replace(
            bare,
            verdict=replace(verdict, reasons=(*verdict.reasons, LEFT_OUT)),
            judged_again=replace(receipt.judged_again, evidence=None),
        )
