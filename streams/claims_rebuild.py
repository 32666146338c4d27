"""`claims rebuild`: the claims of a Redis that lost them, out of the headers of what was emitted on them.

    1  the group's committed offsets
    2  whose namespace it is: bind it anew if Redis is empty, refuse another cluster's or group's
    3  every record of dispatch and review, committed before an end that is taken after 1: its claim, if it is free
    4  how far outputs reach above the group's offsets: then these were reset as well
    5  last of all the marks, on which lanes open

Promise: a crash between any two steps leaves lanes closed, and a second run goes on; what stands is never changed.
Relies on: lanes that refuse while marks are below the committed offsets, and outputs that are kept for as long as
claims live (conditions.py). Source: DESIGN section 4, issue 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka import ConsumerRecord, TopicPartition
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed, bind_identity, identity_of
from ticketgate.store.keys import Keys
from ticketgate.store.marks import Position, raise_marks, read_marks
from ticketgate.store.rebuild import Conflict, Restored, Written, restore, wait_for_replicas
from ticketgate.streams.audit_run import Progress
from ticketgate.streams.broker import describe_broker
from ticketgate.streams.decided import Evidence
from ticketgate.streams.group import committed_offsets
from ticketgate.streams.outcomes import read_claim
from ticketgate.streams.records import output_topics
from ticketgate.streams.scanning import Scanner, open_scanner
from ticketgate.streams.settings import Settings
from ticketgate.streams.walk import decided_in

# Claims in one round trip to Redis.
BATCH = 1_000
MOST_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedMark:
    """A partition's marks before and after. `was_reset`: outputs reach above the group's offset, so the mark makes
    its lane refuse until `replay --replay-from marks` set it right."""

    partition: int
    claimed_before: int | None
    to: int
    was_reset: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """What a rebuild did, or would do."""

    outputs: int
    restored: int
    present: int
    expired: int
    without_identity: int
    conflicts: int
    conflicts_first: tuple[Conflict, ...]
    marks: tuple[RaisedMark, ...]
    bound_identity: bool


async def rebuild_claims(
    settings: Settings, redis: Redis, *, dry_run: bool, offsets_deleted: bool, progress: Progress
) -> Rebuild:
    """Raises `ConditionFailed`, `Unreachable`, `ClaimsNotDurable`, and redis-py's errors."""
    keys = Keys(settings.namespace)
    topics = output_topics(settings)
    async with open_scanner(settings) as scanner:
        sources = await scanner.partitions(settings.topic_tickets)
        sinks = await scanner.partitions(topics.dispatch, topics.review)
        dead_letters = await scanner.partitions(topics.dead_letter)
        committed = await committed_offsets(settings.kafka, settings.group, sources)  # 1
        extents = await scanner.extents((*sinks, *dead_letters))
        if all(offset is None for offset in committed.values()) and not offsets_deleted:
            _refuse_unknown_group(settings, {each: extents[each] for each in sinks})
        bound_identity = await _bind(settings, redis, keys, dry_run=dry_run)  # 2
        evidence = Evidence(topics, since={each: offset or 0 for each, offset in committed.items()})
        claims = _Claims(settings, redis, keys, dry_run=dry_run)
        done, total = 0, sum(len(offsets) for offsets in extents.values())
        async for records in scanner.read(extents):  # 3
            for record in records:
                evidence.add(record)
            if records[0].topic != topics.dead_letter:
                await claims.add(records)
            done += len(records)
            progress("outputs", done, total)
        await claims.finish()
        now = await committed_offsets(settings.kafka, settings.group, sources)  # 4
        marks = [
            await _mark(
                settings,
                scanner,
                redis,
                keys,
                each,
                committed=committed[each] or 0,
                now=now[each] or 0,
                evidence=evidence,
            )
            for each in sources
        ]
        raised = tuple(mark for mark in marks if mark is not None)
        if not dry_run:
            await wait_for_replicas(
                redis, keys, replicas=settings.redis_replicas, timeout=settings.redis_timeout
            )
            for mark in raised:  # 5
                position = Position(
                    settings.topic_tickets, mark.partition, claimed=mark.to, committed=mark.to
                )
                await raise_marks(redis, keys, position)
    return Rebuild(
        outputs=claims.outputs,
        restored=claims.total.restored,
        present=claims.total.present,
        expired=claims.total.expired,
        without_identity=claims.without_identity,
        conflicts=claims.conflicts,
        conflicts_first=claims.total.conflicts,
        marks=raised,
        bound_identity=bound_identity,
    )


async def _bind(settings: Settings, redis: Redis, keys: Keys, *, dry_run: bool) -> bool:
    """Whether the namespace was bound, or would be, because Redis did not know it."""
    broker = await describe_broker(settings.kafka)
    identity = identity_of(cluster=broker.cluster, group=settings.group, topics=[settings.topic_tickets])
    is_known = bool(await redis.exists(keys.identity))
    if is_known or not dry_run:
        await bind_identity(redis, keys, identity)
    return not is_known


def _refuse_unknown_group(settings: Settings, outputs: Mapping[TopicPartition, range]) -> None:
    """A group's name that is wrong looks like one whose offsets were deleted, and must not be bound to the claims."""
    if any(outputs.values()):
        raise ConditionFailed(
            f"group {settings.group!r} has committed nothing, but there are outputs",
            "set TICKETGATE_GROUP to the workers' group; if its offsets were deleted, add --offsets-deleted",
        )


class _Claims:
    """Restores claims in batches and adds up what became of them."""

    def __init__(self, settings: Settings, redis: Redis, keys: Keys, *, dry_run: bool) -> None:
        self._settings, self._redis, self._keys, self._dry_run = settings, redis, keys, dry_run
        self._batch: list[Written] = []
        self.outputs = 0
        self.without_identity = 0
        self.conflicts = 0
        self.total = Restored()

    async def add(self, records: Sequence[ConsumerRecord]) -> None:
        """Take outputs in."""
        for record in records:
            self.outputs += 1
            claim = read_claim(record)
            if claim is None:
                self.without_identity += 1
                continue
            self._batch.append(Written(claim, record.timestamp))
            if len(self._batch) >= BATCH:
                await self.finish()

    async def finish(self) -> None:
        """Restore what was taken in."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        done = await restore(
            self._redis, self._keys, batch, ttl=self._settings.claim_ttl, dry_run=self._dry_run
        )
        self.conflicts += len(done.conflicts)
        self.total = Restored(
            self.total.restored + done.restored,
            self.total.present + done.present,
            self.total.expired + done.expired,
            (*self.total.conflicts, *done.conflicts)[:MOST_NAMED],
        )


async def _mark(
    settings: Settings,
    scanner: Scanner,
    redis: Redis,
    keys: Keys,
    source: TopicPartition,
    *,
    committed: int,
    now: int,
    evidence: Evidence,
) -> RaisedMark | None:
    """Where a partition's marks belong; None where nothing was decided.

    `now` is the committed offset after the outputs were read: above `committed`, a lane is at work, and its marks are
    its own concern.
    """
    reached = committed
    if evidence.count(source, at_or_above=max(committed, now)):
        reached = await decided_in(settings, scanner, redis, keys, source, start=committed, evidence=evidence)
    if not reached:
        return None
    before = await read_marks(redis, keys, source.topic, source.partition)
    return RaisedMark(
        partition=source.partition, claimed_before=before.claimed, to=reached, was_reset=reached > now
    )
