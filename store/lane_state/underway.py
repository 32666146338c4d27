"""What each lane has under way, so that whoever comes after a process that died knows at what it died.

One hash a partition, from the token that a lane opened with to what it does. It is written before the records are
fetched whole, before they are decoded and before they are decided, in the round trips that are made anyway
(`note`). Whoever lives takes its own away, however it ended: it drained, failed, was cut off or frozen. So what another
token left is a death, and it counts once, as one field, however late or often a script of that lane arrives.

Promise: nothing is written by a lane that is not the one that opened last, nor by one that withdrew: it has no token
any more. What was left stays until a lane is past it (`forget`), so deaths add up over any number of workers.
Relies on: nothing else. A Redis that lost it costs as many deaths again; a worker that does not know of it leaves it
alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from ticketgate.store.keys import Keys
from ticketgate.store.script import Script, Value
from ticketgate.store.tokens import GUARD, LaneToken, superseded

_NOTE = Script(
    "note what is under way",
    """
redis.call('HSET', hash, own_token, doing)
return 0
""",
    after=[GUARD],
    keys=["hash"],
    arguments=["doing"],
)

# most: how many fields may stay. withdrawn: tokens to withdraw. What lies before the offset is past. Fields are many
# where processes die of something else again and again: those that blame a record stay.
# Returns what others left, flat; what is returned is marked, so that it is counted once.
_BEGIN = Script(
    "begin a lane",
    """
for _, each in ipairs(withdrawn) do redis.call('HDEL', hash, each) end
local found, left = redis.call('HGETALL', hash), {}
for i = 1, #found, 2 do if found[i] ~= own_token then
  local stop = tonumber(string.match(found[i + 1], '^%a+ %d+ (%d+)') or '0')
  local is_surplus = #left >= 2 * tonumber(most) and not string.find(found[i + 1], 'alone', 1, true)
  if stop <= tonumber(offset) or is_surplus then
    redis.call('HDEL', hash, found[i])
  else
    left[#left + 1] = found[i]
    left[#left + 1] = found[i + 1]
    if not string.find(found[i + 1], 'told', 1, true) then
      redis.call('HSET', hash, found[i], found[i + 1] .. ' told')
    end
  end
end end
redis.call('HSET', hash, own_token, doing)
return left
""",
    after=[GUARD],
    keys=["hash"],
    arguments=["doing", "offset", "most"],
    more_arguments="withdrawn",
)

_FORGET = Script(
    "forget what others left",
    """
for _, each in ipairs(others) do redis.call('HDEL', hash, each) end
return 0
""",
    after=[GUARD],
    keys=["hash"],
    more_arguments="others",
)

# The token goes with what it wrote: a script of it that is still on its way must not bring that back.
_WITHDRAW = Script(
    "withdraw a lane",
    """
redis.call('HDEL', hash, own_token)
if redis.call('GET', token) == own_token then redis.call('DEL', token) end
return 0
""",
    keys=["token", "hash"],
    arguments=["own_token"],
)

# Beyond what one partition's deaths can need: two or three for each thing that a lane does.
MOST_LEFT = 64


class Doing(StrEnum):
    """What a lane does with some offsets."""

    READING = "reading"
    """It fetches from there on, or waits for records; what it fetched it decodes."""

    UNPACKING = "unpacking"
    """It unpacks one batch that it has fetched."""

    DECODING = "decoding"
    DECIDING = "deciding"
    COMMITTING = "committing"

    HUNG = "hung"
    """Deciding gave no answer within its time, and the process ended for it."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What a lane does, and with which offsets. is_alone: its process does nothing else meanwhile, so that a death is
    the fault of these offsets or of chance."""

    doing: Doing
    offsets: range
    is_alone: bool = False

    def encode(self) -> str:
        """`deciding 7 8 alone`: the offset one past the last comes second."""
        return f"{self.doing} {self.offsets.start} {self.offsets.stop}{' alone' if self.is_alone else ''}"


@dataclass(frozen=True, slots=True)
class Left:
    """What a lane that died had under way. is_new: no lane has found it before."""

    token: str
    under_way: UnderWay
    is_new: bool


def reading(offset: int) -> UnderWay:
    """A lane that reads on at an offset."""
    return UnderWay(Doing.READING, range(offset, offset + 1))


def queue_note(pipeline: Pipeline, keys: Keys, token: LaneToken, under_way: UnderWay) -> None:
    """Queue the note of what the lane does from now on, before the scripts that it rides with; it replies 0."""
    _NOTE.queue(pipeline, **_named(keys, token), doing=under_way.encode())


class UnderWays:
    """What the lanes of one namespace have under way, and for the lanes of this process what they have yet to take
    away. All but `withdraw` and `left` raise `Superseded` and redis-py's errors."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys
        # Of lanes of this process that ended while Redis was away.
        self._to_withdraw: dict[str, LaneToken] = {}

    async def begin(self, token: LaneToken, offset: int) -> tuple[Left, ...]:
        """The lane reads from `offset` on; what died lanes left there or behind it, in order of their offsets."""
        own = [each.value for each in self._to_withdraw.values() if each.name == token.name]
        found = cast(
            "list[bytes]",
            await self._run(
                _BEGIN, token, doing=reading(offset).encode(), offset=offset, most=MOST_LEFT, withdrawn=own
            ),
        )
        for value in own:
            self._to_withdraw.pop(value, None)
        left = (_read(name, value) for name, value in zip(found[::2], found[1::2], strict=True))
        return tuple(
            sorted((each for each in left if each is not None), key=lambda each: each.under_way.offsets.start)
        )

    async def left(self, topic: str, partition: int) -> tuple[Left, ...]:
        """What stands for a partition, of lanes that died and of the one at work; for commands."""
        found = cast("dict[bytes, bytes]", await self._redis.hgetall(self._keys.under_way(topic, partition)))
        return tuple(each for name, value in found.items() if (each := _read(name, value)) is not None)

    async def note(self, token: LaneToken, under_way: UnderWay) -> None:
        """The lane does this from now on."""
        await self._run(_NOTE, token, doing=under_way.encode())

    async def forget(self, token: LaneToken, tokens: Collection[str]) -> None:
        """The lane is past what these left."""
        await self._run(_FORGET, token, others=list(tokens))

    async def withdraw(self, token: LaneToken) -> None:
        """The lane lives and has nothing under way any more; its token is no longer good for anything.

        Raises redis-py's errors and may be cancelled; it is tried again by `withdraw_rest` and when the partition is
        opened here.
        """
        self._to_withdraw[token.value] = token
        await self._withdraw(token)

    async def withdraw_rest(self) -> None:
        """Take away what earlier tries could not. Raises redis-py's errors."""
        for token in list(self._to_withdraw.values()):
            await self._withdraw(token)

    async def _withdraw(self, token: LaneToken) -> None:
        await _WITHDRAW(self._redis, **_named(self._keys, token))
        self._to_withdraw.pop(token.value, None)

    async def _run(self, script: Script, token: LaneToken, **given: Value | Sequence[Value]) -> object:
        with superseded():
            return await script(self._redis, **_named(self._keys, token), **given)


def _named(keys: Keys, token: LaneToken) -> dict[str, str]:
    """What all scripts of a lane's notes read."""
    hash_name = keys.under_way(token.topic, token.partition)
    return {"token": token.name, "own_token": token.value, "hash": hash_name}


def _read(token: bytes, value: bytes) -> Left | None:
    """None for what a newer version wrote: it blames nobody here."""
    match = re.match(r"(\w+) (\d+) (\d+)( alone)?(?: told)?$", value.decode(errors="replace"), re.ASCII)
    if match is None or match[1] not in list(Doing):
        return None
    under_way = UnderWay(Doing(match[1]), range(int(match[2]), int(match[3])), is_alone=bool(match[4]))
    return Left(token.decode(), under_way, is_new=not value.endswith(b" told"))
