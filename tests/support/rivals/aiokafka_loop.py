"""Consume, produce, wait for each delivery, commit: at least once, with aiokafka, as most services are written.

Records go out as they came, or with RIVAL_OUTPUT=coordinate as their id and where they lay. It ends on any error and
leaves the rest to its supervisor.
"""

import asyncio
import contextlib
import os
import signal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from coordinates import output  # pyright: ignore[reportMissingImports]

DISPATCH, BATCH = os.environ["RIVAL_DISPATCH"], int(os.environ["RIVAL_BATCH"])


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
        heartbeat_interval_ms=min(3_000, session_ms // 5),
    )
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    made = output if os.environ.get("RIVAL_OUTPUT") == "coordinate" else as_it_came
    async with producer, consumer:
        while not stopping.is_set():
            await carry(consumer, producer, made)


async def carry(consumer, producer, made) -> None:
    """One batch: records first, then the offsets, so a crash between the two repeats the batch."""
    polled = await consumer.getmany(timeout_ms=200, max_records=BATCH)
    sent = [
        await producer.send(DISPATCH, made(record), key=record.key, headers=list(record.headers))
        for records in polled.values()
        for record in records
    ]
    await asyncio.gather(*sent)
    if sent:
        await consumer.commit(
            {source: records[-1].offset + 1 for source, records in polled.items() if records}
        )


def as_it_came(record) -> bytes:
    return record.value


with contextlib.suppress(asyncio.CancelledError):
    asyncio.run(main())
