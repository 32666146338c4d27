"""Many small tickets on a topic, fast, and how far a group is with them. Plain aiokafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError

# A question that a ticket's attribute answers: what is measured is delivery, not a model.
POLICY = """\
name = "bench"
version = "1"

[questions.vip]
type = "noul"
from = "attributes.vip"

[[effects]]
when = "vip"
tool = "assign_queue"
arguments = { queue = "vip" }
"""
# Few, large requests: a benchmark waits for its tickets to be there.
LINGER_MS = 20
MAX_BATCH_BYTES = 256 * 1024


def write_inputs(folder: Path) -> dict[str, str]:
    """The policy and a fixed scorer's file in `folder`; the settings that name them."""
    (folder / "policy.toml").write_text(POLICY)
    (folder / "answers.json").write_text("{}")
    return {"POLICY": str(folder / "policy.toml"), "SCORER": f"fixed:{folder / 'answers.json'}"}


def small_ticket(ticket_id: str) -> bytes:
    """A ticket that is dispatched under POLICY, with a state of some hundred bytes as a short mail has."""
    state = f"Ticket {ticket_id}. " + "The card terminal shows an error when a customer pays. " * 3
    return json.dumps({"id": ticket_id, "state": state, "attributes": {"vip": True}}).encode()


def new_producer(bootstrap: str, *, linger_ms: int = LINGER_MS) -> AIOKafkaProducer:
    """One that sends large requests."""
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=linger_ms, max_batch_size=MAX_BATCH_BYTES, acks="all"
    )


async def send(bootstrap: str, topic: str, ids: Iterable[str]) -> int:
    """Send a small ticket for each id, keyed by it; how many there were."""
    return await send_all(bootstrap, topic, ((each, small_ticket(each)) for each in ids))


async def send_all(bootstrap: str, topic: str, tickets: Iterable[tuple[str, bytes]]) -> int:
    """Send tickets, each keyed by its id; how many there were."""
    count = 0
    async with new_producer(bootstrap) as producer:
        last: asyncio.Future[object] | None = None
        for ticket_id, value in tickets:
            last = await producer.send(topic, value, key=ticket_id.encode())
            count += 1
        await producer.flush()
        if last is not None:
            await last
    return count


class Group:
    """The committed offsets of one group, asked of its coordinator. Use with `async with`."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        self._group = group

    async def __aenter__(self) -> Self:
        await self._admin.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._admin.close()

    async def committed(self) -> int:
        """The sum over the partitions."""
        try:
            offsets = await self._admin.list_consumer_group_offsets(self._group)
        except GroupCoordinatorNotAvailableError:
            return 0  # on a fresh broker there is none before a first member asks for one
        return sum(max(0, place.offset) for place in offsets.values())


async def end_of(bootstrap: str, topic: str) -> int:
    """The sum of the topic's end offsets."""
    async with AIOKafkaConsumer(topic, bootstrap_servers=bootstrap) as reader:
        partitions = reader.partitions_for_topic(topic) or set()
        ends = await reader.end_offsets([TopicPartition(topic, number) for number in partitions])
        return sum(ends.values())
