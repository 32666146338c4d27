"""Send a ticket with aiokafka."""

import asyncio
import json
import os

from aiokafka import AIOKafkaProducer

KAFKA = os.environ.get("TICKETGATE_KAFKA", "127.0.0.1:9092")


async def main() -> None:
    async with AIOKafkaProducer(bootstrap_servers=KAFKA, enable_idempotence=True) as producer:
        ticket = {"id": "T-3001", "state": "Can I get a copy of my invoice?"}
        await producer.send_and_wait("tickets", json.dumps(ticket).encode(), key=ticket["id"].encode())


asyncio.run(main())
