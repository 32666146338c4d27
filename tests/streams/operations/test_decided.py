"""How far a partition is decided without a gap, by its outputs and claims alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from aiokafka import TopicPartition
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey, collision_key
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.store.claims import Claim
from ticketgate.streams.lane.taking.intake import Intake, take_in
from ticketgate.streams.operations.decided import Evidence, decided_to

from ...support.sample_records import READ, TOPICS, Record, claim_of, dead, decided, record, sent

SOURCE = TopicPartition("tickets", 0)


async def reached(inputs: Sequence[Record], outputs: Sequence[Record], claims: Sequence[Claim]) -> int:
    evidence = Evidence(TOPICS, since={SOURCE: 0})
    for output in outputs:
        evidence.add(output)
    by_key = {claim.key: claim for claim in claims}

    async def intakes() -> AsyncIterator[Intake[Ticket]]:
        for each in inputs:
            yield take_in([each], READ)

    async def read_claims(wanted: Sequence[IdempotencyKey]) -> tuple[Claim | None, ...]:
        return tuple(by_key.get(key) for key in wanted)

    return await decided_to(intakes(), start=0, evidence=evidence, read_claims=read_claims)


async def test_one_past_the_last_input_with_an_output() -> None:
    inputs = [sent(0, "A"), sent(1, "B"), sent(2, "C")]

    assert (
        await reached(inputs, [decided(inputs[0]), decided(inputs[1])], [claim_of(each) for each in inputs])
        == 2
    )


async def test_an_input_claimed_and_never_committed_ends_it() -> None:
    inputs = [sent(0, "A"), sent(1, "B")]

    assert await reached(inputs, [decided(inputs[1])], [claim_of(each) for each in inputs]) == 0


async def test_duplicates_and_tombstones_in_between_are_passed() -> None:
    inputs = [sent(0, "A"), sent(1, "A"), record("tickets", 2, None), sent(3, "B")]

    assert (
        await reached(
            inputs, [decided(inputs[0]), decided(inputs[3])], [claim_of(inputs[0]), claim_of(inputs[3])]
        )
        == 4
    )


async def test_a_duplicate_at_the_end_is_left_to_be_read() -> None:
    inputs = [sent(0, "A"), sent(1, "A")]

    assert await reached(inputs, [decided(inputs[0])], [claim_of(inputs[0])]) == 1


async def test_a_dead_letter_is_an_outcome_and_an_unread_one_ends_it() -> None:
    inputs = [record("tickets", 0, b"{"), record("tickets", 1, b"{"), sent(2, "A")]

    assert await reached(inputs, [dead(inputs[0]), decided(inputs[2])], [claim_of(inputs[2])]) == 1


async def test_a_collision_is_decided_by_its_own_record() -> None:
    inputs = [sent(0, "A"), sent(1, "A", "else")]
    other = claim_of(inputs[1])
    derived = replace(other, key=collision_key(other.key, other.fingerprint))
    owner = claim_of(inputs[0])

    both = [decided(inputs[0]), decided(inputs[1], "review", is_collision=True)]
    assert await reached(inputs, both, [owner, derived]) == 2
    assert await reached(inputs, both[:1], [owner, derived]) == 1


async def test_outputs_of_another_namespace_are_no_evidence() -> None:
    one = sent(0, "A")
    theirs = replace(claim_of(one), key=IdempotencyKey("theirs"))

    assert await reached([one], [decided(one)], [theirs]) == 0


async def test_what_is_below_the_start_is_not_kept() -> None:
    evidence = Evidence(TOPICS, since={SOURCE: 5})
    for offset in (3, 5, 8):
        evidence.add(decided(sent(offset, f"T-{offset}")))

    assert evidence.count(SOURCE, at_or_above=0) == 2
    assert (evidence.end(SOURCE), evidence.end(SOURCE, below=8)) == (9, 6)
    assert not evidence.has(Coordinate("tickets", 0, 3), claim_of(sent(3, "T-3")).key)
