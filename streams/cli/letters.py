"""Read the dead letters that a person asks for, out of the topic as it is now."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiokafka import ConsumerRecord
from ticketgate.streams.cli.reader import read
from ticketgate.streams.cli.span import Beginning, End
from ticketgate.streams.dead_letters import Wanted, read_dead_letter
from ticketgate.streams.kafka_connection import connection_of
from ticketgate.streams.settings import Settings


async def letters(settings: Settings, wanted: Wanted) -> AsyncGenerator[ConsumerRecord, None]:
    """The committed ones, each partition's in order. Raises `Unreachable` and `CommandError`."""
    parts = read(
        connection=connection_of(settings),
        topic=settings.topic_dead_letter,
        start=Beginning(),
        until=End(),
        follow=False,
    )
    async with aclosing(parts):
        async for records in parts:
            for record in records:
                if wanted.holds(read_dead_letter(record), record.timestamp):
                    yield record
