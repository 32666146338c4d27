"""Which dead letters were sent again since: a later record under the same key has its outcome in an output.

Nothing marks a record as sent again, so this is read from the outputs, from the time of the first letter on. What has
no key, or was sent under another one, is not found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

from aiokafka import ConsumerRecord
from ticketgate.codecs.records.headers import COORDINATE, header
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.span import End, Moment
from ticketgate.streams.kafka.reading.topic_reading import PassOver, read
from ticketgate.streams.kafka.topics import missing_topics

# A clock that differs between the machines of a deployment must not hide an outcome.
LEEWAY_MS = 600_000


async def outcomes_since(
    settings: Settings, letters: Sequence[tuple[bytes | None, Coordinate | None, int]], *, pass_over: PassOver
) -> Mapping[int, str]:
    """For each letter (its key, where it lay, its time on dead-letter in ms since 1970) by its place: the output in
    which a later record under its key ended. Raises what reading a topic raises."""
    wanted: dict[bytes, list[int]] = defaultdict(list)
    for place, (key, _, _) in enumerate(letters):
        if key is not None:
            wanted[key].append(place)
    if not wanted:
        return {}
    first_ms = max(0, min(time_ms for _, _, time_ms in letters) - LEEWAY_MS)
    start = Moment(datetime.fromtimestamp(first_ms / 1000, UTC))
    found: dict[int, str] = {}
    outputs = (settings.topic_dispatch, settings.topic_review, settings.topic_repairs)
    async with admin_client(connection_of(settings)) as client:
        missing = await missing_topics(client, outputs)
    for topic in (each for each in outputs if each not in missing):
        parts = read(
            connection=connection_of(settings),
            topic=topic,
            start=start,
            until=End(),
            follow=False,
            pass_over=pass_over,
        )
        async with aclosing(parts):
            async for records in parts:
                for record in records:
                    for place in wanted.get(record.key or b"", ()):
                        if _is_later(record, letters[place][1]):
                            found[place] = topic
    return found


def _is_later(record: ConsumerRecord[bytes, bytes], lay_at: Coordinate | None) -> bool:
    """Whether an outcome is of a record behind the letter; of two partitions nobody knows, and it counts."""
    try:
        of = Coordinate.parse((header(record.headers, COORDINATE) or b"").decode())
    except ValueError:
        return False
    if lay_at is None or of.topic != lay_at.topic:
        return lay_at is None
    return of.partition != lay_at.partition or of.offset > lay_at.offset
