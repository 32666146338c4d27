"""A lane without Redis, which the network alone can make repeat or lose: the product's output, and what a lane does
with it when anything goes wrong.

Its input are the numbers from 0 on, its batches one number each. A batch is two records of 20 KB, more than a
producer puts into one request, so that a transaction has all its requests in a known order:
AddPartitionsToTxn, Produce, Produce, AddOffsetsToTxn, TxnOffsetCommit, EndTxn.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from functools import partial

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.lane.transaction import Outgoing, Transactions
from ticketgate.streams.parts.kafka import Kafka

from .topics import new_topic

PADDING = b"." * 20_000


class BareLane:
    """A lane over `bootstrap`; what became of its work is read at the broker's own address."""

    def __init__(self, broker: Kafka, bootstrap: str, *, sink: str) -> None:
        self.sink = sink
        self.reopenings = 0
        self._broker = broker
        # Nobody's input: an offset may be committed for any partition that there is.
        self._source = TopicPartition(sink, 0)
        self._output = Transactions(
            source=self._source,
            group=sink,
            transactional_id=sink,
            transaction_timeout_s=20,
            commit_timeout_s=15,
            new_producer=partial(AIOKafkaProducer, bootstrap_servers=bootstrap),
        )

    @classmethod
    async def of(cls, broker: Kafka, bootstrap: str) -> BareLane:
        """A lane with a topic of its own."""
        return cls(broker, bootstrap, sink=await new_topic(broker))

    async def take(self, batches: int) -> None:
        """Go on from the committed offset until that many batches are committed, reopening after each failure."""
        try:
            while True:
                await self._output.open(LaneToken(self.sink, 0, "", secrets.token_hex()))
                try:
                    for n in range(await self.committed(), batches):
                        await self._output.commit(records(self.sink, n), n + 1)
                except Exception as err:  # noqa: BLE001 - as a lane's
                    self.reopenings += 1
                    print(f"reopens after {err!r}")
                    assert self.reopenings < 10
                else:
                    return
        finally:
            await self._output.close()

    async def committed(self) -> int:
        """The group's offset."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._broker.bootstrap, group_id=self.sink, enable_auto_commit=False
        )
        async with consumer:
            consumer.assign([self._source])
            return await consumer.committed(self._source) or 0

    async def seen(self) -> Counter[str]:
        """How often a read_committed reader sees each record; waits for transactions that are still being ended."""
        place = TopicPartition(self.sink, 0)
        # A read_committed consumer is told where the first open transaction begins, and not where the log ends.
        async with AIOKafkaConsumer(bootstrap_servers=self._broker.bootstrap) as any_consumer:
            end = (await any_consumer.end_offsets([place]))[place]
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._broker.bootstrap,
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        async with consumer:
            consumer.assign([place])
            await consumer.seek_to_beginning(place)
            found: Counter[str] = Counter()
            async with asyncio.timeout(60):
                while await consumer.position(place) < end:
                    read = await consumer.getmany(place, timeout_ms=500)
                    found.update((each.value or b"").strip(b".").decode() for each in read.get(place, []))
            return found


def records(topic: str, n: int) -> list[Outgoing]:
    """What batch `n` emits."""
    return [Outgoing(topic, b"k", b"%d%s" % (n, half) + PADDING) for half in (b"a", b"b")]


def each_once(batches: int) -> Counter[str]:
    """What a reader must see of so many batches."""
    return Counter(f"{n}{half}" for n in range(batches) for half in "ab")
