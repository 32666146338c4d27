"""Walk a partition's inputs from an offset on, to learn how far they are decided (decided.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.codecs.records.identity import IdempotencyKey
from ticketgate.store.claims import Claim
from ticketgate.store.keys import Keys
from ticketgate.store.rebuild import read_claims
from ticketgate.streams.kafka.reading.scanning import Scanner
from ticketgate.streams.lane.taking.intake import Intake, Reader, take_in
from ticketgate.streams.operations.decided import Evidence, decided_to


async def decided_in(
    scanner: Scanner,
    redis: Redis,
    keys: Keys,
    source: TopicPartition,
    *,
    read: Reader[Any],
    start: int,
    evidence: Evidence,
) -> int:
    """One past the last input with an output of its own, from `start` or the first input on, without a gap.

    `read` reads the records of `source`. `start` if there is none.
    Raises `Unreachable`, `ConditionFailed` and redis-py's errors.
    """
    extent = (await scanner.extents([source]))[source]
    if start < extent.start:
        # Inputs that are gone cannot be walked. They must not be behind the offset if they had an effect: their lane
        # would take them for lost unread, and let copies of them through.
        start = max(start, evidence.end(source, below=extent.start))

    async def look_up(wanted: Sequence[IdempotencyKey]) -> tuple[Claim | None, ...]:
        return await read_claims(redis, keys, wanted)

    async def intakes() -> AsyncIterator[Intake[Any]]:
        async for records in scanner.read({source: range(max(start, extent.start), extent.stop)}):
            yield take_in(records, read)

    return await decided_to(intakes(), start=start, evidence=evidence, read_claims=look_up)
