"""The roads of records through the gate, worked out in process: no broker, no Redis, the same codecs and deciding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ticketgate.agents.deciding.decide import Decision, decide
from ticketgate.agents.policy import Policy
from ticketgate.agents.scoring import Scorer
from ticketgate.codecs.records.identity import (
    Fingerprint,
    IdempotencyKey,
    collision_key,
    fingerprint,
    ticket_key,
)
from ticketgate.codecs.records.ticket import Ticket, decode_ticket
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.verdict import Stage, Status
from ticketgate.streams.kafka.envelope import Record, read_line

SAMPLES = Path(str(files("ticketgate.streams").joinpath("samples")))


@dataclass(frozen=True, slots=True)
class Road:
    """Where a record goes, and the gate that says so. `code`: of a dead letter. `decision`: of what was decided."""

    to: str
    stage: Stage
    code: str = ""
    ticket: Ticket | None = None
    decision: Decision | None = None


def read_samples() -> tuple[Record, ...]:
    """The records of the sample file, read as `ticketgate produce` reads them."""
    lines = (SAMPLES / "tickets.jsonl").read_bytes().splitlines()
    return tuple(read_line(line) for line in lines)


def kind(record: Record) -> str:
    """What a sample is meant to show, by its header `sample`; of an ordinary ticket nothing."""
    return next((value.decode() for name, value in record.headers if name == "sample" and value), "")


def take_roads(records: Sequence[Record], *, policy: Policy, scorer: Scorer) -> tuple[Road, ...]:
    """The road of each record, if they all lie in one partition in this order."""
    owners: dict[IdempotencyKey, Fingerprint] = {}
    return tuple(_road(record, owners, policy, scorer) for record in records)


def _road(record: Record, owners: dict[IdempotencyKey, Fingerprint], policy: Policy, scorer: Scorer) -> Road:
    if record.value is None:
        return Road("skipped", Stage.PARSE)
    ticket = decode_ticket(record.value)
    if isinstance(ticket, Malformed):
        return Road("dead-letter", ticket.stage, code=ticket.code)
    own = fingerprint(ticket)
    key = ticket_key("samples", ticket)
    is_collision = owners.get(key, own) != own
    if is_collision:
        key = collision_key(key, own)
    if key in owners:
        return Road("replayed", Stage.IDENTITY, ticket=ticket)
    owners[key] = own
    if is_collision:
        return Road("review", Stage.IDENTITY, ticket=ticket)
    (decision,) = decide([ticket], policy=policy, scorer=scorer)
    to = "dispatch" if decision.verdict.status is Status.ACCEPT else "review"
    return Road(to, decision.verdict.stage, ticket=ticket, decision=decision)
