"""Read the topics for an audit of one input, in the order that makes it right while workers are at work.

1  the group's committed offsets: what is below has its outcome, what is above may not have it yet
2  the inputs' extents and the journal of voids
3  the outputs, to an end taken after 1, so that each outcome of an input below the committed offset is among them
4  the inputs, one after the other
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from aiokafka import ConsumerRecord, TopicPartition
from redis.exceptions import RedisError
from ticketgate.store.connect import connect
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.voids import Voids
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.group import committed_offsets
from ticketgate.streams.kafka.reading.salvage import Gap
from ticketgate.streams.kafka.reading.scanning import Progress, Scanner, open_scanner, read_all
from ticketgate.streams.lane.taking.records import OutputTopics, output_topics
from ticketgate.streams.operations.audit import (
    MOST_NAMED,
    Accounting,
    AuditReport,
    InputPartition,
    OutputsSince,
)
from ticketgate.streams.operations.inputs import Input
from ticketgate.streams.operations.outcomes import Outcomes


@dataclass(frozen=True, slots=True)
class Audit:
    """An audit's report, and whether Redis told of the ranges that were passed over; `without_redis` says why not."""

    report: AuditReport
    without_redis: str | None


async def run_audit(settings: Settings, of: Input, *, progress: Progress) -> Audit:
    """Raises `Unreachable` for the broker, and `ConditionFailed` for a topic that is not there."""
    topics = output_topics(settings)
    claim_ttl_ms = round(settings.claim_ttl.total_seconds() * 1000)
    async with open_scanner(settings) as scanner:
        sources = await scanner.partitions(of.topic)
        sinks = await scanner.partitions(*of.outputs)
        committed = await committed_offsets(connection_of(settings), of.group, sources)  # 1
        inputs = await scanner.extents(sources)  # 2
        voids, without_redis = await _read_voids(settings, sources)
        outcomes = Outcomes(
            topics,
            source=of.topic,
            claim_ttl_ms=claim_ttl_ms,
            named_repetitions=MOST_NAMED,
        )
        outputs = await scanner.extents(sinks)  # 3
        since = await _read_outputs(scanner, outputs, outcomes, topics=topics, progress=progress)
        accounting = Accounting(
            outcomes=outcomes,
            partitions={
                each.partition: InputPartition(
                    first=inputs[each].start,
                    end=inputs[each].stop,
                    committed=committed[each],
                    voids=voids.get(each, ()),
                )
                for each in sources
            },
            outputs_since=since,
            read=of.read,
            claim_ttl_ms=claim_ttl_ms,
        )
        gaps: list[Gap] = []
        async for records in read_all(
            scanner, inputs, what="inputs", progress=progress, unreadable=gaps
        ):  # 4
            accounting.add(records)
        for gap in gaps:
            accounting.pass_over(gap.source.partition, gap.offsets)
    return Audit(accounting.report(), without_redis)


async def _read_outputs(
    scanner: Scanner,
    extents: Mapping[TopicPartition, range],
    outcomes: Outcomes,
    *,
    topics: OutputTopics,
    progress: Progress,
) -> OutputsSince:
    """Fill `outcomes`; returns since when the outputs are whole."""
    oldest: dict[TopicPartition, int] = {}
    async for records in read_all(scanner, extents, what="outputs", progress=progress):
        first: ConsumerRecord = records[0]
        oldest.setdefault(TopicPartition(first.topic, first.partition), first.timestamp)
        for record in records:
            outcomes.add(record)
    now = round(time.time() * 1000)
    # A partition that retention emptied tells nothing of any age.
    cut = {each: oldest.get(each, now) for each, offsets in extents.items() if offsets.start > 0}
    decisions = [since for each, since in cut.items() if each.topic != topics.dead_letter]
    dead_letters = [since for each, since in cut.items() if each.topic == topics.dead_letter]
    return OutputsSince(
        decisions_ms=max(decisions, default=None), dead_letters_ms=max(dead_letters, default=None)
    )


async def _read_voids(
    settings: Settings, sources: tuple[TopicPartition, ...]
) -> tuple[dict[TopicPartition, tuple[range, ...]], str | None]:
    redis = connect(settings.redis.get_secret_value(), timeout=settings.redis_timeout)
    try:
        voids = Voids(redis, Keys(settings.namespace))
        return {each: await voids.ranges(each.topic, each.partition) for each in sources}, None
    except (RedisError, OSError) as err:
        return {}, str(err)
    finally:
        await redis.aclose()
