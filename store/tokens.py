"""Which lane may write for a partition: the one that opened last, told by a token of its own.

A lane takes its token before it fences. The broker's fence keeps a superseded lane from committing; the token keeps it
from writing to Redis what its successor has already read past: a take-over, a void range, a mark. A Redis that was
emptied has no token either, so a lane at work notices that too.
tests/streams/lane/model shows what goes wrong without it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import ResponseError
from ticketgate.store.keys import Keys
from ticketgate.store.script import Fragment

_SUPERSEDED = "SUPERSEDED"

GUARD = Fragment(
    f"""
if redis.call('GET', token) ~= own_token then
  return redis.error_reply('{_SUPERSEDED} this lane is not the one that opened last')
end
""",
    keys=["token"],
    arguments=["own_token"],
)
"""How each script of a lane begins. token: where the partition's token stands; own_token: the lane's own."""


class Superseded(Exception):
    """Another lane has opened the partition since, or Redis was emptied. Nothing was written; the lane reopens."""

    def __init__(self) -> None:
        super().__init__("another lane opened the partition, or Redis lost the token")


@dataclass(frozen=True, slots=True)
class LaneToken:
    """A lane's right to write for a partition, until the next one takes it. `name` is where it stands in Redis."""

    topic: str
    partition: int
    name: str
    value: str


async def take_token(redis: Redis, keys: Keys, topic: str, partition: int) -> LaneToken:
    """Take the partition's token; whoever had it before is superseded."""
    token = LaneToken(topic, partition, keys.token(topic, partition), secrets.token_hex(8))
    await redis.set(token.name, token.value)
    return token


def reply_of(err: ResponseError) -> str:
    """What Redis replied: redis-py puts the beginning of the command, and so of a script, before a pipeline's error,
    and shows that as a tuple."""
    return str(err).rpartition("caused error: ")[2].lstrip("('\"")


@contextmanager
def superseded() -> Iterator[None]:
    """Translate what GUARD replies into `Superseded`."""
    try:
        yield
    except ResponseError as err:
        if reply_of(err).startswith(_SUPERSEDED):
            raise Superseded from err
        raise
