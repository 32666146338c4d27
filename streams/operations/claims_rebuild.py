"""`claims rebuild`: the claims of a Redis that lost them, out of the headers of what was emitted on them.

    1  whose namespace it is: bind it anew if Redis is empty, refuse another cluster's or group's; and which store
    2  lanes closed and fenced (rebuilding.py): from here on nothing moves, though workers may be up
    3  the committed offsets of the groups: tickets', proposals' and settlements'
    4  every record of dispatch, review, repairs and settled, committed before an end that is taken after 2: its claim,
       if it is free, and if it tells of a case its attempt
    5  how far outputs reach above the groups' offsets: then these were reset as well
    6  whether the outputs vouch for all that was committed within a claim's lifetime; if not, it ends here, with what
       is missing, and lanes stay closed
    7  the marks, on which lanes open
    8  lanes opened

Promise: a crash between any two steps leaves lanes closed, and a second run goes on; what stands is never changed.
Relies on: outputs that are kept for as long as claims live, which 6 looks at. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.store.attempts import RestoredAttempts
from ticketgate.store.conditions import ConditionFailed, bind_identity
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import Position, raise_marks, read_marks
from ticketgate.store.rebuild import Conflict, wait_for_replicas
from ticketgate.store.servers import Look, note_gaps
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client, describe
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.group import committed_offsets
from ticketgate.streams.kafka.reading.scanning import Progress, Scanner, broker_errors, open_scanner, read_all
from ticketgate.streams.kafka.topics import missing_topics
from ticketgate.streams.lane.opening.conditions import namespace_identity
from ticketgate.streams.lane.opening.vouching import young_since_ms
from ticketgate.streams.lane.taking.records import output_topics
from ticketgate.streams.operations.decided import Evidence
from ticketgate.streams.operations.inputs import INPUT_NAMES, Input, input_of, outputs_of
from ticketgate.streams.operations.rebuilding import adopt_store, close_lanes, find_gaps, open_lanes
from ticketgate.streams.operations.restoring import Restoring
from ticketgate.streams.operations.walk import decided_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedMark:
    """A partition's marks before and after. `was_reset`: outputs reach above the group's offset, so the mark makes
    its lane refuse until `replay --replay-from marks` set it right."""

    source: TopicPartition
    claimed_before: int | None
    to: int
    was_reset: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """What a rebuild did, or would do. `of_others`: outputs that were made from no input, such as receipts of effects.
    `attempts_unknown`: records of attempts that are too large to tell of them. `gaps`: why outputs cannot vouch for
    what was committed; unless they were accepted, no mark was raised and lanes stay closed."""

    outputs: int
    restored: int
    present: int
    expired: int
    without_identity: int
    of_others: int
    conflicts: int
    conflicts_first: tuple[Conflict, ...]
    attempts: RestoredAttempts
    attempts_unknown: int
    marks: tuple[RaisedMark, ...]
    bound_identity: bool
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """An input as it stood before the outputs were read."""

    of: Input
    committed: Mapping[TopicPartition, int | None]
    has_records: bool


async def rebuild_claims(
    settings: Settings,
    redis: Redis,
    *,
    dry_run: bool,
    offsets_deleted: bool,
    accept_gaps: bool,
    progress: Progress,
) -> Rebuild:
    """Raises `ConditionFailed`, `Unreachable`, `ClaimsNotDurable`, and errors of aiokafka and redis-py."""
    keys = Keys(settings.namespace)
    cluster, inputs = await _look(settings)
    topics = output_topics(settings)
    async with open_scanner(settings) as scanner:
        sources = [await _source(settings, scanner, each) for each in inputs]
        extents = await scanner.extents(await scanner.partitions(*outputs_of(inputs)))
        if not offsets_deleted:
            _refuse_unknown_group(settings, sources, extents)
        bound_identity = await _bind(settings, redis, keys, sources, cluster=cluster, dry_run=dry_run)  # 1
        closed: Look | None = None
        if not dry_run:
            for each in sources:
                await adopt_store(settings, redis, keys, each.of.group, [*each.committed])
            closed = await close_lanes(settings, redis, "claims")  # 2
        sources = [await _source(settings, scanner, each) for each in inputs]  # 3
        extents = await scanner.extents([*extents])
        since = {place: offset or 0 for each in sources for place, offset in each.committed.items()}
        evidence = Evidence(topics, since=since)
        restoring = Restoring(settings, redis, keys, inputs=[each.topic for each in inputs], dry_run=dry_run)
        async for records in read_all(scanner, extents, what="outputs", progress=progress):  # 4
            for record in records:
                evidence.add(record)
            if records[0].topic != topics.dead_letter:
                await restoring.add(records)
        await restoring.finish()
        marks = [
            mark
            for each in sources
            for mark in await _marks(settings, scanner, redis, keys, each, evidence)  # 5
        ]
        gaps = await _gaps(settings, scanner, sources)  # 6
        if closed is not None and gaps and not accept_gaps:
            await note_gaps(redis, keys, "claims")
        elif closed is not None:
            await wait_for_replicas(
                redis, keys, replicas=settings.redis_replicas, timeout=settings.redis_timeout
            )
            for mark in marks:  # 7
                place = (mark.source.topic, mark.source.partition)
                position = Position(*place, claimed=mark.to, committed=mark.to)
                await raise_marks(redis, keys, position, during=closed.known)
            await open_lanes(redis, keys, closed, "claims")  # 8
    return Rebuild(
        outputs=restoring.outputs,
        restored=restoring.claims.restored,
        present=restoring.claims.present,
        expired=restoring.claims.expired,
        without_identity=restoring.without_identity,
        of_others=restoring.of_others,
        conflicts=restoring.conflicts,
        conflicts_first=restoring.claims.conflicts,
        attempts=restoring.attempts,
        attempts_unknown=restoring.attempts_unknown,
        marks=tuple(marks),
        bound_identity=bound_identity,
        gaps=gaps,
    )


async def _look(settings: Settings) -> tuple[str, list[Input]]:
    """The cluster's id, and the inputs that it has: a deployment of before has no proposals or settlements."""
    inputs = [input_of(name, settings) for name in INPUT_NAMES]
    connection = connection_of(settings)
    async with admin_client(connection) as client, broker_errors(connection):
        broker = await describe(client)
        missing = await missing_topics(client, [settings.topic_proposals, settings.topic_settlements])
    return broker.cluster, [each for each in inputs if each.topic not in missing]


async def _source(settings: Settings, scanner: Scanner, of: Input) -> _Source:
    places = await scanner.partitions(of.topic)
    committed = await committed_offsets(connection_of(settings), of.group, places)
    extents = await scanner.extents(places)
    return _Source(of, committed, any(extent.stop for extent in extents.values()))


async def _bind(
    settings: Settings, redis: Redis, keys: Keys, sources: Sequence[_Source], *, cluster: str, dry_run: bool
) -> bool:
    """Whether the namespace was bound, or would be, because Redis did not know it."""
    is_known = bool(await redis.exists(keys.identity))
    for each in sources:
        # An input that nobody ever used may still get another name.
        if (is_known or not dry_run) and (each.of.role == "decide" or each.has_records):
            await bind_identity(redis, keys, namespace_identity(settings, each.of.role, cluster=cluster))
    return not is_known


def _refuse_unknown_group(
    settings: Settings, sources: Sequence[_Source], outputs: Mapping[TopicPartition, range]
) -> None:
    """A group's name that is wrong looks like one whose offsets were deleted, and must not be bound to the claims."""
    if any(offset is not None for each in sources for offset in each.committed.values()):
        return
    if any(len(extent) for place, extent in outputs.items() if place.topic != settings.topic_dead_letter):
        raise ConditionFailed(
            f"group {settings.group!r} has committed nothing, but there are outputs",
            "set TICKETGATE_GROUP to the workers' group; if its offsets were deleted, add --offsets-deleted",
        )


async def _gaps(settings: Settings, scanner: Scanner, sources: Sequence[_Source]) -> tuple[str, ...]:
    lives = min(settings.claim_ttl, settings.outputs_retention)
    is_young = False
    for each in sources:
        youngest = await scanner.offsets_at([*each.committed], young_since_ms(lives))
        is_young |= any(
            (first := youngest[place]) is not None and first < (to or 0)
            for place, to in each.committed.items()
        )
    vouching = dict.fromkeys(
        topic for each in sources for topic in role_terms(each.of.role, settings).vouching
    )
    return await find_gaps(settings, scanner, [*vouching], lives=lives, kept_what="claims", is_young=is_young)


async def _marks(
    settings: Settings, scanner: Scanner, redis: Redis, keys: Keys, source: _Source, evidence: Evidence
) -> list[RaisedMark]:
    """Where the marks of an input's partitions belong; none of one where nothing was decided.

    An offset that is committed above what it was before the outputs were read is that of a lane at work, whose marks
    are its own concern.
    """
    marks: list[RaisedMark] = []
    now = await committed_offsets(connection_of(settings), source.of.group, list(source.committed))
    for each, before in source.committed.items():
        committed, newest = before or 0, now[each] or 0
        reached = committed
        if evidence.count(each, at_or_above=max(committed, newest)):
            reached = await decided_in(
                scanner, redis, keys, each, read=source.of.read, start=committed, evidence=evidence
            )
        if not reached:
            continue
        found = await read_marks(redis, keys, each.topic, each.partition)
        marks.append(
            RaisedMark(source=each, claimed_before=found.claimed, to=reached, was_reset=reached > newest)
        )
    return marks
