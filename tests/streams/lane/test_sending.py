"""A lane's records on a real broker: where each lies, in which order, however many batches they make."""

from __future__ import annotations

import secrets
from collections import Counter
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import MessageSizeTooLargeError
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.lane.transaction import Outgoing, Transactions
from ticketgate.streams.parts.kafka import Kafka

pytestmark = pytest.mark.kafka
PARTITIONS = 3
# Some twenty of the smaller records; the larger ones are more than a batch of this size holds.
BATCH_BYTES = 4_096


async def new_topic(kafka: Kafka) -> str:
    topic = f"sending-{secrets.token_hex(4)}"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    finally:
        await admin.close()
    return topic


async def opened(kafka: Kafka, topic: str, **options: Any) -> Transactions:
    output = Transactions(
        source=TopicPartition(topic, 0),
        group=topic,
        transactional_id=topic,
        transaction_timeout_s=20,
        commit_timeout_s=15,
        new_producer=partial(AIOKafkaProducer, bootstrap_servers=kafka.bootstrap),
        **options,
    )
    await output.open(LaneToken(topic, 0, "", secrets.token_hex()))
    return output


async def committed(kafka: Kafka, topic: str) -> list[list[ConsumerRecord[bytes, bytes]]]:
    """What a read_committed reader finds, by partition."""
    sources = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found: list[list[ConsumerRecord[bytes, bytes]]] = []
    async with AIOKafkaConsumer(
        bootstrap_servers=kafka.bootstrap, isolation_level="read_committed"
    ) as reader:
        reader.assign(sources)
        ends = await reader.end_offsets(sources)
        for source in sources:
            reader.seek(source, 0)
            found.append([])
            while await reader.position(source) < ends[source]:
                found[-1] += (await reader.getmany(source, timeout_ms=500)).get(source, [])
    return found


async def test_records_lie_where_send_would_put_them_each_once_and_in_order(kafka: Kafka) -> None:
    topic = await new_topic(kafka)
    records = [
        Outgoing(
            topic,
            key=f"key {n % 17}".encode(),
            value=b"%d " % n + b"x" * (6_000 if n % 50 == 7 else 150),
            headers=(("n", b"%d" % n), ("n", None), ("größe", b"\xff")),
        )
        for n in range(400)
    ]
    output = await opened(kafka, topic, max_batch_size=BATCH_BYTES)
    try:
        await output.commit(records[:300], 1)
        await output.commit(records[300:], 2)
    finally:
        await output.close()

    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        placed = [
            (await producer.send_and_wait(topic, each.value, key=each.key)).partition for each in records
        ]

    for partition, found in enumerate(await committed(kafka, topic)):
        wanted = [each for each, place in zip(records, placed, strict=True) if place == partition]
        assert len(wanted) > 20
        ours = found[: len(wanted)]
        assert [(each.key, each.value, tuple(each.headers)) for each in ours] == [
            (each.key, each.value, each.headers) for each in wanted
        ]


async def test_a_record_without_a_key_lies_somewhere(kafka: Kafka) -> None:
    topic = await new_topic(kafka)
    output = await opened(kafka, topic)
    try:
        await output.commit([Outgoing(topic, key=None, value=b"%d" % n) for n in range(30)], 1)
    finally:
        await output.close()

    values = [each.value for found in await committed(kafka, topic) for each in found]
    assert Counter(values) == Counter(b"%d" % n for n in range(30))


async def test_a_record_that_the_broker_finds_too_large_takes_the_whole_transaction_with_it(
    kafka: Kafka,
) -> None:
    topic = await new_topic(kafka)
    output = await opened(kafka, topic, max_request_size=2**22)
    records = [Outgoing(topic, key=b"%d" % n, value=b"x" * (2 * 2**20 if n == 40 else 10)) for n in range(60)]
    try:
        with pytest.raises(MessageSizeTooLargeError):
            await output.commit(records, 1)
        # As a lane does: by another token, which fences the epoch of the failed transaction.
        await output.open(LaneToken(topic, 0, "", secrets.token_hex()))
        await output.commit(records[:2], 1)
    finally:
        await output.close()

    assert sum(map(len, await committed(kafka, topic))) == 2
