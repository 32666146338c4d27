"""Records in review, fetched for pages, and what a policy says of them; the last ones are kept.

Promise: what is kept is what lay there under that hash: another record at the same place is fetched anew.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from aiokafka import ConsumerRecord
from ticketgate.agents.policy import Policy
from ticketgate.agents.settling.nearest import Nearest
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.record_at import RecordAt
from ticketgate.streams.operations.review.desk import Lying, Preview, fetch, look, preview, suggestions
from ticketgate.streams.operations.review.rows import Case

T = TypeVar("T")

# A ticket may have a megabyte.
MOST_KEPT = 64
MOST_SUGGESTIONS_KEPT = 1_000


class Topics(Protocol):
    """Where records are read again (kafka/reading/record_at.py)."""

    async def fetch(self, at: Coordinate) -> ConsumerRecord | None:
        """The committed record at a coordinate, or None. Raises aiokafka's errors and TimeoutError."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


class Kept(Generic[T]):
    """The last few of something."""

    def __init__(self, most: int) -> None:
        self._most, self._found = most, OrderedDict[Hashable, T]()

    def get(self, key: Hashable) -> T | None:
        """It, if it is kept."""
        if key in self._found:
            self._found.move_to_end(key)
        return self._found.get(key)

    def put(self, key: Hashable, value: T) -> T:
        """Keep it, and give it back."""
        self._found[key] = value
        self._found.move_to_end(key)
        if len(self._found) > self._most:
            self._found.popitem(last=False)
        return value


class Records:
    """Fetches by one consumer."""

    def __init__(self, settings: Settings, topics: Topics | None = None) -> None:
        self._settings = settings
        self._topics = topics or RecordAt(connection_of(settings))
        self._lying: Kept[Lying] = Kept(MOST_KEPT)
        self._nearest: Kept[Nearest] = Kept(MOST_SUGGESTIONS_KEPT)

    async def lying(self, case: Case) -> Lying:
        """What lies there. Raises `CommandError` where it is gone or another, and `Unreachable`."""
        key = (case.place, case.sha256)
        found = self._lying.get(key)
        return found or self._lying.put(key, await look(self._settings, case, self._topics))

    async def value(self, place: str) -> bytes:
        """The value of what lies at a place, whatever it is. Raises as `lying`."""
        return await fetch(self._settings, place, self._topics)

    async def nearest(self, lying: Lying, policy: Policy) -> Nearest:
        """Suggestions for it."""
        key = (lying.at, lying.sha256, policy.hash)
        found = self._nearest.get(key)
        return found or self._nearest.put(key, await asyncio.to_thread(suggestions, lying, policy))

    async def preview(self, lying: Lying, labels: frozenset[str], policy: Policy) -> Preview:
        """What would follow. Raises `CommandError` where the text is gone."""
        return await asyncio.to_thread(preview, lying, labels, policy)

    async def close(self) -> None:
        """Let go of the broker."""
        await self._topics.close()
