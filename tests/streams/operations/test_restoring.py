"""What a rebuild takes out of single outputs, with a real Redis and without a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from redis.asyncio import Redis
from ticketgate.agents.funnel.repair import permitted_fields
from ticketgate.codecs.records.case_decision import CASE_DECISION_SCHEMA, CaseDecision, ProposedCall
from ticketgate.codecs.records.headers import decision_headers
from ticketgate.codecs.records.pieces import CatalogueRef
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.receipt import RepairReceipt
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.attempts import RestoredAttempts, case_key
from ticketgate.store.connect import connect
from ticketgate.store.keys import Keys
from ticketgate.streams.cli.inputs import NAMES
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.lane.taking.intake import take_in
from ticketgate.streams.operations.inputs import InputName, input_of, outputs_of
from ticketgate.streams.operations.restoring import Restoring
from ticketgate.streams.parts.valkey import Valkey

from ...support.sample_records import (
    NAMESPACE,
    READ_PROPOSAL,
    Record,
    claim_of,
    decided,
    effect_receipt,
    proposed,
    record,
    sent,
)

SETTINGS = load_settings({"namespace": NAMESPACE}, environment={}).settings
KEYS = Keys(NAMESPACE)
INPUTS = [input_of(name, SETTINGS) for name in NAMES]
CATALOGUE = CatalogueRef("payments", "1", "0" * 64)
UNREADABLE = Verdict(Status.REPAIR, Stage.PARSE, ("invalid_json_at_0",), "mend it")
REFUSED = Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "ask who may")


@pytest.fixture
async def redis(valkey: Valkey) -> AsyncIterator[Redis]:
    client = connect(valkey.url, timeout=SETTINGS.redis_timeout)
    yield client
    await client.aclose()


async def restored(redis: Redis, outputs: Sequence[Record]) -> Restoring:
    # Without a time, which is not long ago by Redis' clock.
    restoring = Restoring(SETTINGS, redis, KEYS, inputs=[each.topic for each in INPUTS], dry_run=False)
    await restoring.add([replace(each, timestamp=-1) for each in outputs])
    await restoring.finish()
    return restoring


def proposal_in(made_from: Record) -> Proposal:
    (arrival,) = take_in([made_from], READ_PROPOSAL).arrivals
    found: Proposal = arrival.document
    return found


def judged(made_from: Record, topic: str, verdict: Verdict, **changed: Any) -> Record:
    """The decision on a proposal, as a worker writes it."""
    claim, proposal = claim_of(made_from), proposal_in(made_from)
    repair = RepairReceipt(
        stage=str(verdict.stage),
        codes=verdict.reasons,
        source_of_truth="json",
        permitted=permitted_fields(verdict),
        anchors={},
        before={},
        after={},
        catalogue=CATALOGUE,
        attempt=proposal.attempt,
        maximum=1,
        remaining=0,
    )
    fields: dict[str, Any] = {
        "case_id": proposal.case_id,
        "attempt": proposal.attempt,
        "verdict": verdict,
        "catalogue": CATALOGUE,
        "evidence": {"authority": None, "world": {}},
        "repair": repair if verdict.status is Status.REPAIR else None,
        "idempotency_key": claim.key,
        "fingerprint": claim.fingerprint,
        "coordinate": claim.coordinate,
        "decided_at": datetime(2026, 9, 1, tzinfo=UTC),
        "proposal": ProposedCall(call=proposal.call, request=proposal.request),
    }
    decision = CaseDecision(**{**fields, **changed})
    headers = decision_headers(decision, schema=CASE_DECISION_SCHEMA)
    return record(topic, 0, decision.encode(), headers=headers)


async def attempts(redis: Redis, case: Record) -> set[bytes | str]:
    key = case_key(NAMESPACE, proposal_in(case))
    return {*await redis.hkeys(KEYS.attempts(key.key, key.version))} - {b"revision"}


def test_the_commands_know_every_input_and_no_receipts_are_outcomes() -> None:
    assert get_args(InputName) == NAMES
    assert outputs_of(INPUTS) == ("dispatch", "review", "dead-letter", "repairs", "settled")
    assert [each.group for each in INPUTS] == ["ticketgate", "ticketgate.propose", "ticketgate.settle"]


@pytest.mark.redis
async def test_claims_on_both_inputs_come_back_and_receipts_of_effects_are_none(redis: Redis) -> None:
    one, two = sent(0, "A"), proposed(0, "A")

    done = await restored(
        redis,
        [decided(one), judged(two, "review", REFUSED), effect_receipt(0), record("review", 0, b"{}")],
    )

    assert (done.outputs, done.claims.restored, done.of_others, done.without_identity) == (4, 2, 1, 1)
    names = {KEYS.claim(claim_of(each).key).encode() for each in (one, two)}
    assert {name async for name in redis.scan_iter(match="*:claim:*")} == names


@pytest.mark.redis
async def test_attempts_come_back_wherever_their_decision_lies(redis: Redis) -> None:
    first, second, other = proposed(0, "A", "{"), proposed(1, "A", "}", attempt=2), proposed(2, "B")
    outputs = [
        judged(first, "repairs", UNREADABLE),
        judged(second, "review", REFUSED),
        judged(other, "review", REFUSED),
    ]

    assert (await restored(redis, outputs)).attempts == RestoredAttempts(restored=3)
    assert (await restored(redis, outputs)).attempts == RestoredAttempts(present=3)

    assert (await attempts(redis, first), await attempts(redis, other)) == ({b"1", b"2"}, {b"1"})


@pytest.mark.redis
async def test_a_collision_and_what_is_too_large_to_tell_are_no_attempts(redis: Redis) -> None:
    collided = Verdict(Status.REVIEW, Stage.IDENTITY, ("said something else",), "a person compares")
    one, other, large = proposed(0, "A"), proposed(1, "A", "[]"), proposed(2, "B")
    key = claim_of(other).for_collision().key

    done = await restored(
        redis,
        [
            judged(one, "review", REFUSED),
            judged(other, "review", collided, idempotency_key=key),
            judged(large, "review", REFUSED, proposal=None),
            decided(proposed(3, "C")),
        ],
    )

    assert (done.claims.restored, done.attempts.restored, done.attempts_unknown) == (4, 1, 2)
    assert await attempts(redis, one) == {b"1"}
