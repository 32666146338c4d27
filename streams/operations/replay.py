"""Set a group's offsets back on purpose: to where commits ended, which emits nothing again, or further, which does.

    1  no member may be in the group; the broker refuses the commit if one joins meanwhile
    2  the plan: for each partition its offset, what is read again, what is emitted again
    3  the offsets are committed
    4  the `committed` marks follow: a lane refuses in between, which is the safe side

A replay never goes forward: what lies between would be passed over. So it refuses a topic that was made anew, and one
that lost its end unless that is what it is for (cut.py). `dispatch` goes back to where commits ended and no
further: the ledger keeps an effect from being had twice, but what nobody carried out then might be carried out now.
So does `settlements`: by today's policy and clock, what was taken then might not be, and free its ticket for another.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import Marks, Position, lower_committed, raise_marks, read_marks
from ticketgate.store.lane_state.witnesses import forget_witnesses
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.group import committed_offsets, require_no_members, set_offsets
from ticketgate.streams.kafka.reading.scanning import Progress, Scanner, open_scanner, read_all
from ticketgate.streams.lane.opening.claims_store import read_store
from ticketgate.streams.lane.opening.conditions import require_namespace
from ticketgate.streams.lane.taking.records import output_topics
from ticketgate.streams.operations.cut import not_in_ledger, require_same_topic, require_whole
from ticketgate.streams.operations.decided import Evidence
from ticketgate.streams.operations.inputs import Input, Source
from ticketgate.streams.operations.replay_places import (
    FromBeginning,
    FromCut,
    FromMarks,
    FromOffset,
    FromTime,
    ReplayFrom,
)
from ticketgate.streams.operations.walk import decided_in


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlan:
    """One partition's part of a plan. `committed` is its offset now, None without one; `to` the offset it gets;
    `read_again` inputs from there on were decided, and `emitted_again` of them have outputs that come again;
    `oldest_ms` is when the oldest of these was written."""

    partition: int
    committed: int | None
    mark: int | None
    to: int
    read_again: int
    emitted_again: int
    oldest_ms: int | None

    @property
    def is_change(self) -> bool:
        """Whether the offset or the mark moves."""
        return self.committed != self.to or (self.mark or 0) > self.to


@dataclass(frozen=True, slots=True)
class Plan:
    """What a replay does, partition by partition; partitions in which nothing was ever decided are left out."""

    partitions: tuple[PartitionPlan, ...]

    @property
    def changes(self) -> tuple[PartitionPlan, ...]:
        """The partitions whose offset or mark moves."""
        return tuple(each for each in self.partitions if each.is_change)

    @property
    def emitted_again(self) -> int:
        """How many inputs come out a second time, under their old keys."""
        return sum(each.emitted_again for each in self.changes)

    @property
    def oldest_ms(self) -> int | None:
        """When the oldest record that comes again was first written."""
        return min(
            (each.oldest_ms for each in self.changes if each.oldest_ms is not None and each.emitted_again),
            default=None,
        )


async def plan_replay(
    settings: Settings,
    of: Source,
    redis: Redis,
    place: ReplayFrom,
    *,
    partition: int | None,
    progress: Progress,
) -> Plan:
    """1 and 2. Changes nothing. Raises `GroupHasMembers`, `ConditionFailed`, `Unreachable`, redis-py's errors."""
    if not isinstance(place, (FromMarks, FromCut)):
        _require_decided_anew(of)
    await require_no_members(connection_of(settings), of.group)
    keys = Keys(settings.namespace)
    await _require_identity(settings, of, redis, keys)
    async with open_scanner(settings) as scanner:
        sources = await _sources(of, scanner, partition)
        if isinstance(place, FromOffset) and len(sources) > 1:
            raise ConditionFailed("an offset means one partition", "name it with --partition")
        if isinstance(of, Input) or not isinstance(place, FromCut):
            has_id = await require_same_topic(scanner, redis, keys, sources, of=of)
            if not isinstance(place, FromCut):
                await require_whole(scanner, redis, keys, sources, of=of, has_id=has_id)
        committed = await committed_offsets(connection_of(settings), of.group, sources)
        marks = {each: await read_marks(redis, keys, each.topic, each.partition) for each in sources}
        _require_marks(of, marks, committed)
        targets = await _targets(scanner, place, sources, committed, marks)
        evidence = await _read_evidence(settings, of, scanner, targets, progress)
        if isinstance(place, (FromMarks, FromCut)) and isinstance(of, Input):
            targets = {
                each: await decided_in(
                    scanner, redis, keys, each, read=of.read, start=start, evidence=evidence
                )
                if evidence.count(each, at_or_above=start)
                else start
                for each, start in targets.items()
            }
        elif isinstance(place, FromCut):
            most_bytes = settings.max_record_bytes * 2
            targets = {
                each: min(
                    max(committed[each] or 0, marks[each].committed or 0),
                    await not_in_ledger(scanner, redis, keys, each, max_bytes=most_bytes),
                )
                for each in targets
            }
        if isinstance(place, FromMarks):
            # Without a commit there is nothing to go back to: a lane begins at the first record by itself.
            targets = {each: to for each, to in targets.items() if to > 0}
        return Plan(
            tuple(_plan(each, to, committed[each], marks[each], evidence) for each, to in targets.items())
        )


async def carry_out(settings: Settings, of: Source, redis: Redis, plan: Plan) -> None:
    """3 and 4. Raises `GroupHasMembers`, `Unreachable` and redis-py's errors; a second run goes on."""
    keys, topic = Keys(settings.namespace), of.topic
    offsets = {TopicPartition(topic, each.partition): each.to for each in plan.changes}
    store = await read_store(redis, keys)
    telling = "" if store is None else store.tell()
    if offsets:
        await set_offsets(connection_of(settings), of.group, offsets, metadata=telling)  # 3
    for each in plan.changes:  # 4
        await lower_committed(redis, keys, topic, each.partition, each.to)
        await raise_marks(redis, keys, Position(topic, each.partition, claimed=each.to, committed=each.to))
    for each in plan.partitions:
        # They may lie behind a cut, also where the offset need not move. The lanes learn others.
        await forget_witnesses(redis, keys, topic, each.partition)


def _require_decided_anew(of: Source) -> None:
    """That of what was read its outcome may come again."""
    if not isinstance(of, Input):
        raise ConditionFailed(
            f"{of.topic} is not decided anew, and an effect that was left to others might be carried out",
            "use --replay-from marks or cut; an effect that was refused comes by `ticketgate ledger dispatch KEY`",
        )
    if of.role == "settle":
        # Its time is over by now: it would not be taken, and would let go of the ticket that it has settled.
        raise ConditionFailed(
            "what a person decided is not decided again",
            "use --replay-from marks or cut; what was not taken is settled anew with `ticketgate review settle`",
        )


async def _require_identity(settings: Settings, of: Source, redis: Redis, keys: Keys) -> None:
    if not await redis.exists(keys.identity):
        raise ConditionFailed(
            f"Redis does not know namespace {settings.namespace!r}: it was emptied, or is another one",
            "run `ticketgate claims rebuild` first, or set TICKETGATE_NAMESPACE",
        )
    await require_namespace(settings, redis, of.role)


async def _sources(of: Source, scanner: Scanner, partition: int | None) -> tuple[TopicPartition, ...]:
    sources = await scanner.partitions(of.topic)
    if partition is None:
        return sources
    chosen = tuple(each for each in sources if each.partition == partition)
    if not chosen:
        raise ConditionFailed(
            f"topic {of.topic} has no partition {partition}",
            f"choose one of 0 to {len(sources) - 1}",
        )
    return chosen


def _require_marks(
    of: Source, marks: Mapping[TopicPartition, Marks], committed: Mapping[TopicPartition, int | None]
) -> None:
    """Claims that are lost would let what is read again through as new, under claims of its own."""
    for each, found in marks.items():
        if (committed[each] or 0) > (found.claimed or 0):
            raise ConditionFailed(
                f"{each.topic}:{each.partition} is committed to {committed[each]} and claimed only to"
                f" {found.claimed or 0}: Redis has lost claims",
                f"run `ticketgate {'claims' if isinstance(of, Input) else 'ledger'} rebuild` first",
            )


async def _targets(
    scanner: Scanner,
    place: ReplayFrom,
    sources: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int | None],
    marks: Mapping[TopicPartition, Marks],
) -> dict[TopicPartition, int]:
    """Where each partition goes, before what lies above a mark is looked at; one never decided in has no place."""
    served = [each for each in sources if committed[each] is not None or marks[each].claimed is not None]
    # What commits reached for certain: never is a partition taken further than that by a replay.
    most = {each: max(committed[each] or 0, marks[each].committed or 0) for each in served}
    match place:
        case FromMarks():
            return most
        case FromCut() | FromBeginning():
            extents = await scanner.extents(served)
            return {each: min(extents[each].start, most[each]) for each in served}
        case FromOffset(offset=offset):
            extents = await scanner.extents(served)
            return {each: _backwards(each, offset, extents[each].start, most[each]) for each in served}
        case FromTime(at=at):
            found = await scanner.offsets_at(served, round(at.timestamp() * 1000))
            return {
                each: min(most[each] if (to := found[each]) is None else to, most[each]) for each in served
            }
        case _:
            assert_never(place)


def _backwards(source: TopicPartition, offset: int, first: int, most: int) -> int:
    if offset < first:
        # Below the first record a lane would take decided inputs for lost unread.
        raise ConditionFailed(
            f"{source.topic}:{source.partition} begins at {first}, not at {offset}",
            "choose a later offset, or `--replay-from beginning`",
        )
    if offset > most:
        raise ConditionFailed(
            f"{source.topic}:{source.partition} is decided to {most}, and inputs from there to {offset} would be"
            " passed over",
            f"choose an offset of at most {most}",
        )
    return offset


async def _read_evidence(
    settings: Settings,
    of: Source,
    scanner: Scanner,
    targets: Mapping[TopicPartition, int],
    progress: Progress,
) -> Evidence:
    extents = await scanner.extents(await scanner.partitions(*of.outputs))
    evidence = Evidence(output_topics(settings), since=targets)
    async for records in read_all(scanner, extents, what="outputs", progress=progress):
        for record in records:
            evidence.add(record)
    return evidence


def _plan(
    source: TopicPartition, to: int, committed: int | None, marks: Marks, evidence: Evidence
) -> PartitionPlan:
    return PartitionPlan(
        partition=source.partition,
        committed=committed,
        mark=marks.committed,
        to=to,
        read_again=max(0, max(committed or 0, marks.committed or 0, evidence.end(source)) - to),
        emitted_again=evidence.count(source, at_or_above=to),
        oldest_ms=evidence.oldest_ms(source, at_or_above=to),
    )
