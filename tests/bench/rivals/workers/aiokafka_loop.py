"""Consume, produce, wait for each delivery, commit: at least once, with aiokafka."""

import asyncio
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def main() -> None:
    bootstrap, session_ms = os.environ["RIVAL_KAFKA"], int(os.environ["RIVAL_SESSION_MS"])
    dispatch, batch = os.environ["RIVAL_DISPATCH"], int(os.environ["RIVAL_BATCH"])
    consumer = AIOKafkaConsumer(
        os.environ["RIVAL_TICKETS"],
        bootstrap_servers=bootstrap,
        group_id=os.environ["RIVAL_GROUP"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=session_ms,
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    async with producer, consumer:
        while True:
            polled = await consumer.getmany(timeout_ms=200, max_records=batch)
            sent = [
                await producer.send(dispatch, record.value, key=record.key, headers=list(record.headers))
                for records in polled.values()
                for record in records
            ]
            await asyncio.gather(*sent)
            if sent:
                await consumer.commit(
                    {source: records[-1].offset + 1 for source, records in polled.items() if records}
                )


asyncio.run(main())
