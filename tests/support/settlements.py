"""Settlements, what they settle and the keys that sign them: builders for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.settling.console_keys import ConsoleKey, ConsoleRole
from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.records.identity import (
    Coordinate,
    IdempotencyKey,
    effect_key,
    fingerprint,
    ticket_key,
)
from ticketgate.codecs.records.pieces import Effect
from ticketgate.codecs.records.settlement import Action, Settlement, effects_digest, value_digest
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.verdict import Status

AT = datetime(2026, 11, 29, 18, tzinfo=UTC)
KEY = IdempotencyKey("0f" * 32)
UUID = "8f14e45f-ceea-467f-a0e6-1a2b3c4d5e6f"
NO_EFFECTS = effects_digest(())


def settlement(**changes: Any) -> Settlement:
    """An accepting one, unsigned."""
    fields: dict[str, Any] = {
        "id": UUID,
        "action": Action.ACCEPT,
        "ticket_id": "T-1",
        "key": KEY,
        "review": Coordinate("review", 0, 7),
        "review_sha256": "ab" * 32,
        "labels": ("billing",),
        "policy": "cd" * 32,
        "effects": NO_EFFECTS,
        "why": "seen the invoice",
        "by": "p-1",
        "at": AT,
        "expires_at": AT + timedelta(hours=8),
    } | changes
    if fields["action"] is not Action.ACCEPT:
        fields |= {"labels": (), "policy": None, "effects": None}
    return Settlement(**fields)


def console_key(name: str = "front-desk", *roles: ConsoleRole, secret: bytes = b"s" * 32) -> ConsoleKey:
    """A key that signs and verifies by a shared secret."""
    return ConsoleKey(
        id=name,
        algorithm="HS256",
        roles=frozenset(roles or (ConsoleRole.READ, ConsoleRole.SETTLE)),
        verifying=secret,
        signing=secret,
    )


def review_record(decision: Decision, ticket: Ticket, *, namespace: str = "test") -> DecisionRecord:
    """What a lane writes of a decision, at offset 3 of tickets:0."""
    key = ticket_key(namespace, ticket)
    return DecisionRecord(
        ticket_id=ticket.id,
        tenant=ticket.tenant,
        verdict=decision.verdict,
        selected=decision.selected,
        violations=decision.violations,
        probabilities=decision.probabilities,
        answers=decision.answers,
        truncated=decision.truncated,
        policy=decision.policy,
        model=decision.model,
        effects=tuple(
            Effect(each.tool, each.arguments, effect_key(key, each.place)) for each in decision.effects
        ),
        idempotency_key=key,
        fingerprint=fingerprint(ticket),
        coordinate=Coordinate("tickets", 0, 3),
        decided_at=AT,
        ticket=None if decision.verdict.status is Status.ACCEPT else ticket.to_json(),
    )


def settling(record: DecisionRecord, **changes: Any) -> Settlement:
    """A settlement of that record."""
    return replace(
        settlement(
            ticket_id=record.ticket_id,
            key=record.idempotency_key,
            review_sha256=value_digest(record.encode()),
            policy=record.policy.hash.rjust(64, "0"),
        ),
        **changes,
    )
