"""The reconciler at work beside the lanes: what is due looked at again and again, while the process lives.

Promise: an outcome that stays open holds nothing up. Whatever fails is tried again; nothing ends the loop but its
owner. See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from redis.exceptions import RedisError
from ticketgate.agents.effects.ledger import EffectLedger
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.codecs.records.receipt import EffectReceipt
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.lane.opening.opening import LaneRefusal
from ticketgate.streams.lane.transaction import abandon
from ticketgate.streams.roles.case_records import ReceiptWriter

log = logging.getLogger(__name__)

# How often it looks what is due; the ledger's back-off says when an effect is.
LOOK_EVERY_S = 0.5
# After a failure, such as a Redis or a broker that is away.
PAUSE_S = 2.0
# What a person must mend is looked at as seldom as by a lane that refuses.
REFUSED_PAUSE_S = 10.0
SEND_TIMEOUT_S = 30.0


class ReceiptSender:
    """Announces receipts outside a lane's transaction: acknowledged by all replicas, in the order given."""

    def __init__(self, writer: ReceiptWriter, new_producer: Callable[[], AIOKafkaProducer]) -> None:
        self._writer = writer
        self._new_producer = new_producer
        self._producer: AIOKafkaProducer | None = None

    async def announce(self, receipts: Sequence[EffectReceipt]) -> None:
        """Returns when the receipts are there. Raises aiokafka's errors and TimeoutError."""
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                producer = await self._started()
                for receipt in receipts:
                    for record in self._writer.effect(receipt):
                        await producer.send_and_wait(
                            record.topic, record.value, key=record.key, headers=list(record.headers)
                        )
        except (KafkaError, TimeoutError):
            await self.close()
            raise

    async def close(self) -> None:
        """Let go of the connection within a bound; never raises."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await abandon(producer)

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = self._new_producer()
            try:
                await producer.start()
            except BaseException:
                await abandon(producer)
                raise
            self._producer = producer
        return self._producer


async def reconcile_forever(
    reconciler: Reconciler,
    ledger: EffectLedger,
    telemetry: Telemetry,
    *,
    check_conditions: Callable[[], Awaitable[None]],
) -> None:
    """Look at what is due until cancelled, from when `check_conditions` raises nothing: a worker of another cluster, or
    at a Redis that forgets, must not touch the ledger, as its lanes do not. Asked again after each failure."""
    is_checked = False
    while True:
        try:
            if not is_checked:
                await check_conditions()
                is_checked = True
            looked = await reconciler.run_once()
            held = await ledger.count_open()
            telemetry.open_outcomes(held.count, held.oldest_s)
            for entry in looked:
                if not entry.is_open:
                    telemetry.effect(str(entry.status or entry.state))
            await asyncio.sleep(LOOK_EVERY_S)
        except (ConditionFailed, LaneRefusal) as err:
            log.error("nothing is reconciled: %s", err)
            await asyncio.sleep(REFUSED_PAUSE_S)
        except Exception as err:  # noqa: BLE001 - it is tried again, and the lanes tell what ails
            is_checked = False
            is_away = isinstance(err, (KafkaError, RedisError, OSError, Unreachable))
            log.log(
                logging.WARNING if is_away else logging.ERROR, "reconciling failed: %r; trying again", err
            )
            await asyncio.sleep(PAUSE_S)
