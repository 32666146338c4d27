"""Read the dead letters that a person asks for, out of the topic as it is now."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiokafka import ConsumerRecord
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.topic_reading import PassOver, read_whole
from ticketgate.streams.lane.taking.dead_letters import Wanted, read_dead_letter


async def letters(
    settings: Settings, wanted: Wanted, *, pass_over: PassOver
) -> AsyncGenerator[ConsumerRecord, None]:
    """The committed ones, each partition's in order. A batch that nobody can read is told to `pass_over`.
    Raises `Unreachable` and `CommandError`."""
    found = read_whole(connection_of(settings), [settings.topic_dead_letter], pass_over=pass_over)
    async with aclosing(found):
        async for record in found:
            letter = read_dead_letter(record)
            if wanted.holds(letter, letter.time_ms(record.timestamp)):
                yield record
