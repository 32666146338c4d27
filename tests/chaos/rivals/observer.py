"""What plain aiokafka readers see of a contender's run: its group, its progress, its records. No ticketgate code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import OffsetAndMetadata

from .books import Content, Place

POLL_MS = 1_000
# A reader that does not come to the end by then has not read everything: what it misses must not be called lost.
READ_TIMEOUT_S = 120.0
STATE = 2  # the field of a described group that says Stable


@dataclass(frozen=True, slots=True)
class Progress:
    """`committed` and `ends` of the input by partition; `visible` and `written` are the sums of the outputs' last
    stable offsets and of their ends: they differ while a transaction is open.
    """

    committed: dict[int, int]
    ends: dict[int, int]
    visible: int
    written: int

    @property
    def is_settled(self) -> bool:
        """Whether all input is committed and all output can be read."""
        return self.committed == self.ends and self.visible == self.written


@dataclass(frozen=True, slots=True)
class Observer:
    """Reads one deployment's topics."""

    bootstrap: str
    group: str
    tickets: str
    outputs: Sequence[str]

    def is_group_stable(self) -> bool:
        """Whether the group has members with partitions."""
        return asyncio.run(self._is_group_stable())

    def progress(self) -> Progress:
        """How far the group is now."""
        return asyncio.run(self._progress())

    def inputs(self) -> dict[Place, Content]:
        """Every input record's id and text."""
        found: dict[Place, Content] = {}
        for partition, offset, value in asyncio.run(self._read([self.tickets])):
            ticket = json.loads(value)
            found[partition, offset] = ticket["id"], ticket["state"]
        return found

    def emitted(self) -> list[Place]:
        """The coordinate that each visible output record tells."""
        places = [json.loads(value)["coordinate"] for _, _, value in asyncio.run(self._read(self.outputs))]
        return [(place["partition"], place["offset"]) for place in places]

    async def _is_group_stable(self) -> bool:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            described: list[Any] = await admin.describe_consumer_groups([self.group])
            return any(group[STATE] == "Stable" for answer in described for group in answer.groups)
        finally:
            await admin.close()

    async def _progress(self) -> Progress:
        async with self._reader(group_id=self.group) as stable, self._reader("read_uncommitted") as all_of_it:
            sources = await _partitions(stable, [self.tickets])
            outputs = await _partitions(stable, self.outputs)
            # Assigned, not subscribed: this reader must not join the workers' group.
            stable.assign(sources + outputs)
            offsets: list[int | OffsetAndMetadata | None] = [
                await stable.committed(source) for source in sources
            ]
            ends = await stable.end_offsets(sources)
            visible = await stable.end_offsets(outputs)
            written = await all_of_it.end_offsets(outputs)
        committed = {
            source.partition: offset if isinstance(offset, int) else 0
            for source, offset in zip(sources, offsets, strict=True)
        }
        return Progress(
            committed,
            {source.partition: end for source, end in ends.items()},
            sum(visible.values()),
            sum(written.values()),
        )

    async def _read(self, topics: Sequence[str]) -> list[tuple[int, int, bytes]]:
        async with self._reader() as reader:
            partitions = await _partitions(reader, topics)
            reader.assign(partitions)
            ends = await reader.end_offsets(partitions)
            for partition in partitions:
                reader.seek(partition, 0)
            found: list[tuple[int, int, bytes]] = []
            async with asyncio.timeout(READ_TIMEOUT_S):
                for partition in partitions:
                    while await reader.position(partition) < ends[partition]:
                        polled = await reader.getmany(partition, timeout_ms=POLL_MS)
                        found += [
                            (each.partition, each.offset, each.value or b"")
                            for each in polled.get(partition, [])
                        ]
            return found

    def _reader(
        self, isolation_level: str = "read_committed", group_id: str | None = None
    ) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            isolation_level=isolation_level,
            group_id=group_id,
            enable_auto_commit=False,
        )


async def _partitions(reader: AIOKafkaConsumer, topics: Sequence[str]) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for topic in topics:
        while not (numbers := reader.partitions_for_topic(topic)):
            await reader._client.force_metadata_update()
            await reader._client._wait_on_metadata(topic)
        found += [TopicPartition(topic, number) for number in sorted(numbers)]
    return found
