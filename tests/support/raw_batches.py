"""Batches as a producer in another language may write them: with header names that are not UTF-8.

aiokafka's producer encodes names from text, so a placeholder of the same length is written and then replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from .deployment import Sent

BAD_NAME = b"bad\xffname"
PLACEHOLDER = "bad-name"

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class _Builder(_DefaultRecordBatchBuilderPy):  # type: ignore[misc]
    def build(self) -> bytearray:
        self._buffer = bytearray(bytes(self._buffer).replace(PLACEHOLDER.encode(), BAD_NAME))
        return super().build()


def batch(
    records: Sequence[Sent],
    *,
    codec: str = "none",
    timestamp_ms: int = 1_700_000_000_000,
    most_bytes: int = 2**24,
) -> BatchBuilder:
    """One batch; a header named PLACEHOLDER gets the name BAD_NAME. Records are a millisecond apart."""
    built = BatchBuilder(most_bytes, 0)
    built._builder = _Builder(2, CODECS[codec], 0, -1, -1, 0, most_bytes)
    for place, record in enumerate(records):
        built.append(
            timestamp=timestamp_ms + place, key=record.key, value=record.value, headers=list(record.headers)
        )
    built.close()
    return built


def batch_bytes(records: Sequence[Sent], *, codec: str = "none") -> bytes:
    """The bytes of `batch`."""
    return bytes(batch(records, codec=codec)._build())


def send_batches(bootstrap: str, topic: str, batches: Sequence[tuple[int, BatchBuilder]]) -> list[int]:
    """Send each batch to its partition, in order; the offsets that they begin at."""

    async def send() -> list[int]:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
            sent = []
            for partition, each in batches:
                delivery = await producer.send_batch(each, topic, partition=partition)
                sent.append((await delivery).offset)
            return sent

    return asyncio.run(send())
