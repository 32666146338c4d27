"""How far a partition is decided without a gap, as outputs and claims tell, where the group's offset cannot.

Promise: all inputs from a start to `decided_to` have their outcome, so a lane that goes on there emits nothing again
and passes over nothing. The `committed` mark alone would not do: it is written after the commit, and a lane that died
in between has not written it.
Relies on: claims that are there (rebuilt, if they were lost), a group without members.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from aiokafka import ConsumerRecord, TopicPartition
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey, collision_key
from ticketgate.store.claims import Claim
from ticketgate.streams.lane.taking.intake import Arrival, D, Intake
from ticketgate.streams.lane.taking.records import OutputTopics
from ticketgate.streams.operations.outcomes import digest, read_claim, read_coordinate

ReadClaims = Callable[[Sequence[IdempotencyKey]], Awaitable[tuple[Claim | None, ...]]]


class Evidence:
    """The outputs that were made from inputs at or above `since` of their partition. Bounded per record: digests."""

    def __init__(self, topics: OutputTopics, *, since: Mapping[TopicPartition, int]) -> None:
        self._topics = topics
        self._since = since
        self._keys: dict[Coordinate, set[bytes]] = {}
        self._oldest_ms: dict[Coordinate, int] = {}

    def add(self, record: ConsumerRecord) -> None:
        """Take one output in, if it is of interest."""
        coordinate = read_coordinate(record)
        if coordinate is None:
            return
        since = self._since.get(TopicPartition(coordinate.topic, coordinate.partition))
        if since is None or coordinate.offset < since:
            return
        claim = None if record.topic == self._topics.dead_letter else read_claim(record)
        self._keys.setdefault(coordinate, set()).add(digest("" if claim is None else claim.key))
        if claim is not None:
            oldest = self._oldest_ms.get(coordinate, record.timestamp)
            self._oldest_ms[coordinate] = min(oldest, record.timestamp)

    def has(self, coordinate: Coordinate, key: str) -> bool:
        """Whether a record under this key was made from this input; the empty key is a dead letter's."""
        return digest(key) in self._keys.get(coordinate, ())

    def end(self, source: TopicPartition, *, below: int | None = None) -> int:
        """One past the last input of a partition that has an output, among those below an offset; 0 if none has."""
        return max(
            (
                each.offset + 1
                for each in self._keys
                if _is_from(each, source, 0) and (below is None or each.offset < below)
            ),
            default=0,
        )

    def count(self, source: TopicPartition, *, at_or_above: int) -> int:
        """How many inputs of a partition have an output, from an offset on."""
        return sum(1 for each in self._keys if _is_from(each, source, at_or_above))

    def oldest_ms(self, source: TopicPartition, *, at_or_above: int) -> int | None:
        """When the oldest decision among these was written, in ms; None if there is none."""
        return min(
            (at for each, at in self._oldest_ms.items() if _is_from(each, source, at_or_above)), default=None
        )


async def decided_to(
    intakes: AsyncIterator[Intake[D]], *, start: int, evidence: Evidence, read_claims: ReadClaims
) -> int:
    """One past the last input that has an output of its own, if all before it, from `start` on, have their outcome.

    `intakes` are the inputs of one partition from `start` on, in order.
    """
    reached = start
    async for intake in intakes:
        outcomes = await _outcomes(intake, evidence, read_claims)
        for offset in sorted(outcomes):
            match outcomes[offset]:
                case True:
                    reached = offset + 1
                case False:
                    return reached
                case None:
                    pass  # a duplicate: it is suppressed, however often it is read
    return reached


async def _outcomes(intake: Intake[D], evidence: Evidence, read_claims: ReadClaims) -> dict[int, bool | None]:
    """By offset: True for an output of its own, None where nothing would be emitted, False where something would."""
    wanted: list[IdempotencyKey] = []
    for arrival in intake.arrivals:
        wanted += (arrival.claim.key, collision_key(arrival.claim.key, arrival.claim.fingerprint))
    found = await read_claims(wanted)
    outcomes: dict[int, bool | None] = {
        arrival.claim.coordinate.offset: _outcome(arrival, claim, derived, evidence)
        for arrival, claim, derived in zip(intake.arrivals, found[::2], found[1::2], strict=True)
    }
    return outcomes | {
        each.coordinate.offset: evidence.has(each.coordinate, "") for each in intake.unreadable
    }


def _outcome(
    arrival: Arrival[D], claim: Claim | None, derived: Claim | None, evidence: Evidence
) -> bool | None:
    wanted = arrival.claim
    if evidence.has(wanted.coordinate, ""):
        return True  # a settlement that was not taken, or what was a dead letter under the settings of then
    if claim is not None and claim.fingerprint != wanted.fingerprint:
        claim = derived  # a collision has its record under the derived key
    if claim is None:
        return False
    if claim.coordinate != wanted.coordinate:
        return None
    return evidence.has(wanted.coordinate, claim.key)


def _is_from(coordinate: Coordinate, source: TopicPartition, offset: int) -> bool:
    return (coordinate.topic, coordinate.partition) == (source.topic, source.partition) and (
        coordinate.offset >= offset
    )
