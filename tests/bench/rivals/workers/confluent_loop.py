"""Consume, produce, flush, commit: at least once, with confluent-kafka."""

import os

from confluent_kafka import Producer  # pyright: ignore[reportMissingImports]
from confluent_parts import BATCH, PRODUCER, new_consumer  # pyright: ignore[reportMissingImports]

consumer, producer = new_consumer(), Producer(PRODUCER)
while True:
    records = [record for record in consumer.consume(BATCH, timeout=0.2) if record.error() is None]
    for record in records:
        producer.produce(
            os.environ["RIVAL_DISPATCH"], record.value(), key=record.key(), headers=record.headers() or []
        )
    if records:
        producer.flush()
        consumer.commit(asynchronous=False)
