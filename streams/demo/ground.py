"""What every demo stands on: a broker with its topics and a Redis, started on free ports of this machine.

Promise: what is opened here ends with its block, and its data go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.config.settings import Guarantee, Settings, load_settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.kafka.topics import create_topics, topic_specs
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.process import Part
from ticketgate.streams.parts.tansu import Tansu
from ticketgate.streams.parts.valkey import Valkey

# A demo ends by itself: what is nowhere after this long is reported as not accounted for.
OUTCOME_TIMEOUT_S = 60.0
# The broker answers a commit before its markers are in every partition; readers see the records a moment later.
VISIBLE_TIMEOUT_S = 20.0
POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A broker that runs, by its name and guarantee, and a Redis. given: what a worker on them is given, by setting;
    settings: those, and every other as it is by default."""

    broker: str
    guarantee: Guarantee
    given: Mapping[str, str]
    settings: Settings


def choose_broker() -> tuple[Kafka | Tansu, Guarantee, str]:
    """Apache Kafka where Java and its jars are there, else the embedded broker; its guarantee, and why not Kafka."""
    try:
        return Kafka(), "exactly_once", ""
    except PartMissing as err:
        return Tansu(), "at_least_once", str(err)


@asynccontextmanager
async def open_ground(say: Callable[[str], None]) -> AsyncIterator[Ground]:
    """Start a broker and Valkey, and create the topics; `say` gets a line for people at each step.

    Raises `PartMissing`, `PartFailed`, and what start-up refuses.
    """
    broker, guarantee, why = choose_broker()
    name = type(broker).__name__
    if why:
        say(f"no Apache Kafka here ({why}); taking the embedded broker {name}")
    async with AsyncExitStack() as stack:
        say(f"starting {name} and Valkey")
        valkey = Valkey()
        await asyncio.gather(*(stack.enter_async_context(running(part)) for part in (broker, valkey)))
        given = {"kafka": broker.bootstrap, "redis": valkey.url, "guarantee": guarantee}
        settings = load_settings(given, environment={}).settings
        async with admin_client(connection_of(settings)) as client:
            await create_topics(client, topic_specs(settings))
        yield Ground(broker=name, guarantee=guarantee, given=given, settings=settings)


@asynccontextmanager
async def running(part: Part) -> AsyncIterator[None]:
    """Start a part, and end it with the block."""
    try:
        await asyncio.to_thread(part.start)
        yield
    finally:
        await asyncio.to_thread(part.close)


async def send(settings: Settings, topic: str, records: Sequence[Record]) -> list[Coordinate]:
    """Send all in order; where each lies."""
    async with AIOKafkaProducer(acks="all", **connection_of(settings).arguments()) as producer:
        sent = [
            await producer.send(topic, each.value, key=each.key, headers=list(each.headers))
            for each in records
        ]
        return [Coordinate(at.topic, at.partition, at.offset) for at in await asyncio.gather(*sent)]
