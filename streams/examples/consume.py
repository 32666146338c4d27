"""Read decisions with aiokafka, and hand on each effect once. Ends after ten seconds without a record."""

import asyncio
import json
import os

from aiokafka import AIOKafkaConsumer

KAFKA = os.environ.get("TICKETGATE_KAFKA", "127.0.0.1:9092")


async def main() -> None:
    done: set[str] = (
        set()
    )  # yours is a table with this key; a consumer that ends before its commit reads again
    async with AIOKafkaConsumer(
        "dispatch",
        "review",
        bootstrap_servers=KAFKA,
        group_id="my-service-python",
        isolation_level="read_committed",  # without it, records of transactions that were aborted are seen
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        while batch := await consumer.getmany(timeout_ms=10_000):
            for record in (each for records in batch.values() for each in records):
                decision = json.loads(record.value)
                if decision["schema"] != "decision/1":  # with a funnel, its cases lie here too
                    continue
                print(record.topic, decision["ticket_id"], *decision["verdict"]["reasons"])
                for effect in decision["effects"]:
                    if effect["idempotency_key"] not in done:
                        print("  ", effect["tool"], effect["arguments"])
                        done.add(effect["idempotency_key"])
            await consumer.commit()


asyncio.run(main())
