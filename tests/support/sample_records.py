"""Records of tickets and proposals, and of the outputs made from them, for what reads topics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aiokafka import ConsumerRecord
from ticketgate.codecs.records.headers import dead_letter_headers, record_headers
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey, collision_key
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.verdict import Stage
from ticketgate.store.claims import Claim
from ticketgate.streams.lane.taking.intake import Reader, proposal_reader, take_in, ticket_reader
from ticketgate.streams.lane.taking.records import OutputTopics

from .proposals import proposal

NAMESPACE = "test"
READ = ticket_reader(namespace=NAMESPACE, max_bytes=2**18)
READ_PROPOSAL = proposal_reader(namespace=NAMESPACE, max_bytes=2**18)
TOPICS = OutputTopics("dispatch", "review", "dead-letter", "repairs", "receipts", "settled")
DAY_MS = 86_400_000
TTL_MS = 14 * DAY_MS
NOW_MS = 100 * DAY_MS

Record = ConsumerRecord


def record(
    topic: str, offset: int, value: bytes | None, *, at_ms: int = NOW_MS, headers: Sequence = ()
) -> Record:
    return ConsumerRecord(topic, 0, offset, at_ms, 0, None, value, None, 0, 0, tuple(headers))


def sent(offset: int, ticket_id: str, state: str = "text", *, at_ms: int = NOW_MS) -> Record:
    return record("tickets", offset, json.dumps({"id": ticket_id, "state": state}).encode(), at_ms=at_ms)


def proposed(offset: int, case_id: str, call: str = "{}", *, attempt: int = 1) -> Record:
    return record("proposals", offset, proposal(case_id, call=call, attempt=attempt).value)


def claim_of(made_from: Record) -> Claim:
    """The claim of a ticket or proposal."""
    read: Reader[Any] = READ_PROPOSAL if made_from.topic == "proposals" else READ
    (arrival,) = take_in([made_from], read).arrivals
    return arrival.claim


def decided(
    made_from: Record, topic: str = "dispatch", *, is_collision: bool = False, at_ms: int = NOW_MS
) -> Record:
    claim = claim_of(made_from)
    key = collision_key(claim.key, claim.fingerprint) if is_collision else claim.key
    schema = "case-decision/1" if made_from.topic == "proposals" else "decision/1"
    headers = record_headers(
        idempotency_key=key, fingerprint=claim.fingerprint, coordinate=claim.coordinate, schema=schema
    )
    return record(topic, 0, b"{}", at_ms=at_ms, headers=headers)


def effect_receipt(offset: int, topic: str = "review") -> Record:
    """What is told of an effect whose decision lies on `dispatch` at an offset."""
    source = Coordinate("dispatch", 0, offset)
    headers = record_headers(
        idempotency_key=IdempotencyKey(f"effect:2:{source}"),
        fingerprint=Fingerprint("0" * 64),
        coordinate=source,
        schema="receipt/1",
    )
    return record(topic, 0, b"{}", headers=headers)


def dead(made_from: Record) -> Record:
    coordinate = Coordinate(made_from.topic, 0, made_from.offset)
    headers = dead_letter_headers(Malformed(Stage.PARSE, "not_json", "not JSON"), coordinate)
    return record("dead-letter", 0, made_from.value, headers=headers)
