"""One bare lane, steps 0 to 6 of the delivery protocol, without a line of the product.

It proves what ticketgate builds on: that Apache Kafka fences, and that an offset read
after fencing is never stale. `python spike_lane.py BOOTSTRAP REDIS_PORT [HOLD_AT]` takes the one partition of
`in` by batches of four, prints a line after each step, and at HOLD_AT waits for a line on stdin.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from redis.asyncio import Redis

GROUP, SOURCE, SINK = "spike", TopicPartition("in", 0), "out"
BATCH = 4


def fenced_producer(bootstrap: str) -> AIOKafkaProducer:
    """The producer of this partition's lane; starting it fences its predecessor."""
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=f"spike.{SOURCE.topic}.{SOURCE.partition}",
        transaction_timeout_ms=60_000,
        retry_backoff_ms=20,
    )


def group_consumer(bootstrap: str) -> AIOKafkaConsumer:
    """A consumer that takes positions only from the lane."""
    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="none",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )


async def claim(redis: Redis, record: ConsumerRecord) -> bool:
    """Whether this coordinate owns the record's key."""
    mine = f"{record.topic}:{record.partition}:{record.offset}"
    found: Any = await redis.set(f"claim:{record.key}", mine, nx=True, get=True)
    return found is None or found.decode() == mine


class Steps:
    """Says each step, and holds at one of them until a line arrives on stdin."""

    def __init__(self, hold_at: str) -> None:
        self.hold_at = hold_at

    async def reached(self, step: str, detail: object = "") -> None:
        print(step, detail, flush=True)
        if step == self.hold_at:
            self.hold_at = ""
            await asyncio.to_thread(sys.stdin.readline)


async def run_lane(bootstrap: str, redis: Redis, hold_at: str = "") -> None:
    """Take the partition to its end, four records a transaction."""
    steps = Steps(hold_at)
    async with fenced_producer(bootstrap) as producer, group_consumer(bootstrap) as consumer:
        await steps.reached("fenced")  # 1
        consumer.assign([SOURCE])
        next_offset = await consumer.committed(SOURCE) or 0
        end = (await consumer.end_offsets([SOURCE]))[SOURCE]
        consumer.seek(SOURCE, next_offset)
        await steps.reached("read", next_offset)  # 2
        while next_offset < end:
            batch = (await consumer.getmany(SOURCE, timeout_ms=5_000, max_records=BATCH)).get(SOURCE, [])
            if not batch:
                continue
            owned = [record for record in batch if await claim(redis, record)]
            await steps.reached("claimed", len(owned))  # 4
            await producer.begin_transaction()  # 6
            sent = [await producer.send(SINK, record.value, key=record.key, partition=0) for record in owned]
            if sent:
                await asyncio.gather(*sent)
            await steps.reached("sent", len(sent))
            next_offset = batch[-1].offset + 1
            await producer.send_offsets_to_transaction({SOURCE: next_offset}, GROUP)
            await steps.reached("offsets", next_offset)
            await producer.commit_transaction()
            await steps.reached("committed", next_offset)
    print("end", flush=True)


async def main() -> None:
    bootstrap, redis_port, *hold_at = sys.argv[1:]
    async with Redis(host="127.0.0.1", port=int(redis_port)) as redis:
        try:
            await run_lane(bootstrap, redis, *hold_at)
        except Exception as err:  # noqa: BLE001 - the test reads which one it was
            print("failed", type(err).__name__, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
