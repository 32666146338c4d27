"""Settlements sent, one after the other, by one producer.

Promise: what `send` returned from lies in the topic, and all replicas in sync have it. What it raised from may lie
there or not: the same settlement, sent again, takes effect once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.settlement import Settlement
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import unreachable
from ticketgate.streams.kafka.connection import connection_of

DELIVERY_TIMEOUT_S = 20.0
# `stop()` waits for a broker that died, without a limit of its own.
CLOSE_TIMEOUT_S = 3.0


@dataclass(slots=True)
class SettlementSender:
    """A producer for `settlements`, started when first needed and made anew after a fault."""

    settings: Settings
    _producer: AIOKafkaProducer | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def send(self, settlement: Settlement) -> Coordinate:
        """Send it, and return where it lies. Raises `Unreachable`: then nobody knows, and it may be sent again."""
        topic = self.settings.topic_settlements
        async with self._turn:
            try:
                async with asyncio.timeout(DELIVERY_TIMEOUT_S):
                    producer = await self._started()
                    told = await producer.send_and_wait(
                        topic, settlement.encode(), key=settlement.ticket_id.encode()
                    )
            except (KafkaError, TimeoutError, OSError) as err:
                await self._drop()
                raise unreachable(connection_of(self.settings), err) from err
        return Coordinate(topic, told.partition, told.offset)

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._turn:
            await self._drop()

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                **connection_of(self.settings).arguments(), acks="all", request_timeout_ms=10_000
            )
            await self._producer.start()
        return self._producer

    async def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await producer.stop()
        except (KafkaError, TimeoutError):
            pass  # what was acknowledged is there
