"""The same work on confluent-kafka: a batch is one transaction with its offsets."""

import os

from confluent_kafka import Producer  # pyright: ignore[reportMissingImports]
from confluent_parts import BATCH, PRODUCER, new_consumer  # pyright: ignore[reportMissingImports]
from same_work import Record, Work  # pyright: ignore[reportMissingImports]

work = Work()
consumer = new_consumer()
producer = Producer({**PRODUCER, "transactional.id": os.environ["RIVAL_GROUP"]})
producer.init_transactions()
while True:
    found = [record for record in consumer.consume(BATCH, timeout=0.2) if record.error() is None]
    if not found:
        continue
    made = work.do(
        [
            Record(each.topic(), each.partition(), each.offset(), each.value(), each.headers() or [])
            for each in found
        ]
    )
    producer.begin_transaction()
    for each in made:
        producer.produce(each.topic, each.value, key=each.key, headers=each.headers)
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
    )
    producer.commit_transaction()
