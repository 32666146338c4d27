"""What a partition's marks were made from: the topic's id, and the last records that were claimed and committed.

Marks are offsets, and an offset says nothing of what lies there. A topic that is deleted and made anew, or that loses
its end, gives the same offsets to other records; these witnesses tell. Promise: only the lane that opened last writes
them, in the round trips that it makes anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from ticketgate.store.keys import Keys
from ticketgate.store.script import Script
from ticketgate.store.tokens import GUARD, LaneToken, superseded

# fields: their names and values by turns.
_WRITE = Script(
    "write witnesses",
    """
for i = 1, #fields, 2 do redis.call('HSET', witnesses, fields[i], fields[i + 1]) end
return 0
""",
    after=[GUARD],
    keys=["witnesses"],
    more_arguments="fields",
)

# 64 bits: that another record of the same offset has the same is no accident.
DIGEST_CHARS = 16


class HasContent(Protocol):
    """A record as a consumer gives it."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


@dataclass(frozen=True, slots=True)
class Witness:
    """One record of a partition: where it lies, and a digest of its time, key, value and headers."""

    offset: int
    digest: str

    @classmethod
    def of(cls, record: HasContent) -> Witness:
        """Of a record that was read."""
        found = hashlib.sha256()
        parts = [b"%d" % record.timestamp, record.key, record.value]
        for name, value in record.headers:
            parts += [name.encode("utf-8", "surrogateescape"), value]
        for part in parts:
            # With its length, so that no two records run together to the same bytes.
            found.update(b"-" if part is None else b"%d:" % len(part) + part)
        return cls(record.offset, found.hexdigest()[:DIGEST_CHARS])

    def __str__(self) -> str:
        """`offset:digest`, the value in Redis."""
        return f"{self.offset}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Witness:
        """What `__str__` wrote."""
        offset, _, digest = text.partition(":")
        return cls(int(offset), digest)


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What Redis has of one partition; None where it has nothing."""

    topic_id: str | None = None
    claimed: Witness | None = None
    committed: Witness | None = None

    @property
    def last(self) -> Witness | None:
        """The one furthest on."""
        found = [each for each in (self.claimed, self.committed) if each is not None]
        return max(found, key=lambda each: each.offset, default=None)


async def read_witnesses(redis: Redis, keys: Keys, topic: str, partition: int) -> Witnesses:
    """Those of one partition."""
    entries: Any = await redis.hgetall(keys.witness(topic, partition))
    found: dict[str, str] = {name.decode(): value.decode() for name, value in entries.items()}
    claimed, committed = found.get("claimed"), found.get("committed")
    return Witnesses(
        found.get("topic"),
        None if claimed is None else Witness.parse(claimed),
        None if committed is None else Witness.parse(committed),
    )


def write_as(pipeline: Pipeline, token: LaneToken, keys: Keys, fields: dict[str, str]) -> None:
    """Queue the writing of some of `topic`, `claimed` and `committed`, by the lane that opened last and no other."""
    _WRITE.queue(
        pipeline,
        token=token.name,
        own_token=token.value,
        witnesses=keys.witness(token.topic, token.partition),
        fields=[part for field in fields.items() for part in field],
    )


async def write_witnesses(redis: Redis, keys: Keys, token: LaneToken, fields: dict[str, str]) -> None:
    """As `write_as`, at once. Raises `Superseded` and redis-py's errors."""
    async with redis.pipeline(transaction=False) as pipeline:
        write_as(pipeline, token, keys, fields)
        with superseded():
            await pipeline.execute()


async def forget_witnesses(redis: Redis, keys: Keys, topic: str, partition: int) -> None:
    """Forget them, for an operator who has looked at the topic as it is, while no lane serves it."""
    await redis.delete(keys.witness(topic, partition))
