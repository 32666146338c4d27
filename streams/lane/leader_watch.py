"""The watch over the brokers that lead a worker's partitions: one of them may be away while the group's is there, and a
lane that has nothing to read does not notice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NoReturn

from aiokafka import AIOKafkaConsumer, TopicPartition
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.within import within

log = logging.getLogger(__name__)

# One request to each broker that leads.
LOOK_S = 10.0
# A leader that moves is found within seconds.
ANSWER_S = 10.0


async def watch_leaders(
    serving: Callable[[], tuple[AIOKafkaConsumer, Sequence[TopicPartition]] | None],
    readiness: Readiness,
    *,
    part: str,
) -> NoReturn:
    """Ask where the partitions end, every LOOK_S, and tell /readyz under `part`, until cancelled.

    `serving`: the consumer, and the partitions whose lanes are at work; None while there are none.
    """
    while True:
        if (found := serving()) is None:
            readiness.work(part)
        else:
            consumer, sources = found
            try:
                await within(ANSWER_S, consumer.end_offsets(sources))
            except Exception as err:  # noqa: BLE001 - whatever it is, they do not answer
                named = ", ".join(f"{source.topic}:{source.partition}" for source in sorted(sources))
                what = f"broker_away: not every broker that leads {named} answers ({str(err) or repr(err)})"
                readiness.wait(
                    part, f"{what}; bring those brokers back, or see why the partitions have no leader"
                )
                log.warning("%s", what, extra={"cause": f"leaders {part}"})
            else:
                readiness.work(part)
        await asyncio.sleep(LOOK_S)
