"""A rival: consume, produce, wait for each delivery, commit. At least once, as most services are written.

It ends on any error and leaves the rest to its supervisor.
"""

import asyncio
import contextlib
import json
import os
import signal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def main() -> None:
    bootstrap, session_ms = os.environ["RIVAL_KAFKA"], int(os.environ["RIVAL_SESSION_MS"])
    consumer = AIOKafkaConsumer(
        os.environ["RIVAL_TICKETS"],
        bootstrap_servers=bootstrap,
        group_id=os.environ["RIVAL_GROUP"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=session_ms // 5,
    )
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    async with producer, consumer:
        while not stopping.is_set():
            await carry(consumer, producer)


async def carry(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer) -> None:
    """One batch: records first, then the offsets, so a crash between the two repeats the batch."""
    polled = await consumer.getmany(timeout_ms=200, max_records=16)
    sent = [
        await producer.send(os.environ["RIVAL_DISPATCH"], output(record), key=record.key)
        for records in polled.values()
        for record in records
    ]
    await asyncio.gather(*sent)
    if sent:
        await consumer.commit(
            {source: records[-1].offset + 1 for source, records in polled.items() if records}
        )


def output(record) -> bytes:
    place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    return json.dumps({"id": json.loads(record.value)["id"], "coordinate": place}).encode()


with contextlib.suppress(asyncio.CancelledError):
    asyncio.run(main())
