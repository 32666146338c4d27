"""What both confluent-kafka arms share: a consumer, and the settings of a producer."""

import os

# Installed in the rivals' own environment alone.
from confluent_kafka import Consumer  # pyright: ignore[reportMissingImports]

BATCH = int(os.environ["RIVAL_BATCH"])
PRODUCER = {
    "bootstrap.servers": os.environ["RIVAL_KAFKA"],
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
}


def new_consumer() -> Consumer:
    """Subscribed to the tickets, committing nothing by itself."""
    session_ms = int(os.environ["RIVAL_SESSION_MS"])
    consumer = Consumer(
        {
            "bootstrap.servers": os.environ["RIVAL_KAFKA"],
            "group.id": os.environ["RIVAL_GROUP"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": session_ms,
            "max.poll.interval.ms": session_ms * 2,
        }
    )
    consumer.subscribe([os.environ["RIVAL_TICKETS"]])
    return consumer
