"""Topics for the tests of this folder."""

from __future__ import annotations

import uuid

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from ticketgate.streams.parts.kafka import Kafka


async def new_topic(broker: Kafka, partitions: int = 1) -> str:
    """A fresh topic of a name that nobody else has."""
    name = f"n{uuid.uuid4().hex[:8]}"
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1)])
    finally:
        await admin.close()
    return name
