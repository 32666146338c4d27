"""How far each partition got, as Redis remembers it: the marks that show whether Redis or Kafka forgot something.

Promise: marks only rise, but for `lower_committed`. `claimed` is one past the last offset whose keys were claimed,
`committed` the highest committed offset that a lane has seen. A committed offset above `claimed` means that Redis
lost claims; one below `committed` means that Kafka's offsets were reset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.underway import queue_note, reading
from ticketgate.store.lane_state.witnesses import Witness, write_as
from ticketgate.store.script import Fragment, Script
from ticketgate.store.server_scripts import SOUND
from ticketgate.store.tokens import GUARD, LaneToken, superseded

RAISE_MARK: Final = Fragment(
    """
if tonumber(redis.call('GET', mark) or '-1') < tonumber(least) then redis.call('SET', mark, least) end
""",
    keys=["mark"],
    arguments=["least"],
)
"""Raise a mark to at least a value."""

# wanted_id: what must stand in the server hash, '' for anything.
_RAISE_DURING = Fragment(
    "if wanted_id ~= '' and redis.call('HGET', server, 'id') ~= wanted_id then return 0 end",
    keys=["server"],
    arguments=["wanted_id"],
)
_RAISE = Script("raise a mark", "return 0", after=[_RAISE_DURING, RAISE_MARK])
_RAISE_AS = Script("raise a lane's mark", "return 0", after=[GUARD, RAISE_MARK])
_RAISE_CLAIMED_AS = Script("raise the claimed mark", "return 0", after=[GUARD, SOUND, RAISE_MARK])

_LOWER = Script(
    "lower a mark",
    """
local found = tonumber(redis.call('GET', mark) or '-1')
if found > tonumber(most) then redis.call('SET', mark, most) end
return 0
""",
    keys=["mark"],
    arguments=["most"],
)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a partition stands: `claimed` is one past the last offset whose keys were claimed; `committed` the input
    offset of its last commit, or None before the first."""

    topic: str
    partition: int
    claimed: int
    committed: int | None


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one partition as Redis has them; None where there is none."""

    claimed: int | None
    committed: int | None


async def read_marks(redis: Redis, keys: Keys, topic: str, partition: int) -> Marks:
    """The marks of a partition."""
    return (await read_all_marks(redis, keys, topic, [partition]))[partition]


async def read_all_marks(
    redis: Redis, keys: Keys, topic: str, partitions: Collection[int]
) -> Mapping[int, Marks]:
    """The marks of some partitions of a topic, in one round trip."""
    names = [name(topic, partition) for partition in partitions for name in (keys.claimed, keys.committed)]
    found = [None if value is None else int(value) for value in await redis.mget(names)]
    return {
        partition: Marks(claimed=found[2 * place], committed=found[2 * place + 1])
        for place, partition in enumerate(partitions)
    }


def raise_claimed_as(pipeline: Pipeline, token: LaneToken, keys: Keys, value: int) -> None:
    """Queue the raising of the claimed mark to at least `value`, by the lane that opened last, on the server that has
    the claims: on another one the mark would vouch for what is not there."""
    mark = keys.claimed(token.topic, token.partition)
    _RAISE_CLAIMED_AS.queue(pipeline, token=token.name, own_token=token.value, mark=mark, least=value)


async def mark_committed(
    redis: Redis, keys: Keys, token: LaneToken, offset: int, witness: Witness | None = None
) -> None:
    """Write down that the lane's partition is committed to `offset`, so that offsets which are reset later are noticed,
    and that the lane reads on there.

    `witness`: the last record before it. Raises `Superseded` and redis-py's errors; what was committed stays committed.
    """
    async with redis.pipeline(transaction=False) as pipeline:
        mark = keys.committed(token.topic, token.partition)
        _RAISE_AS.queue(pipeline, token=token.name, own_token=token.value, mark=mark, least=offset)
        queue_note(pipeline, keys, token, reading(offset))
        if witness is not None:
            write_as(pipeline, token, keys, {"committed": str(witness)})
        with superseded():
            await pipeline.execute()


async def raise_committed(redis: Redis, keys: Keys, committed: Iterable[tuple[str, int, int]]) -> None:
    """Raise the `committed` marks to offsets that were read behind the partitions' fences.

    committed: topic, partition and offset of each. Raises redis-py's errors.
    """
    async with redis.pipeline(transaction=False) as pipeline:
        for topic, partition, offset in committed:
            mark = keys.committed(topic, partition)
            _RAISE.queue(pipeline, mark=mark, least=offset, server=keys.server, wanted_id="")
        await pipeline.execute()


async def raise_marks(redis: Redis, keys: Keys, position: Position, *, during: str | None = None) -> None:
    """Raise a partition's marks to `position`: an operator's, while no lane serves it. during: only while this rebuild
    is the one at work (`servers.Look.known`); one that slept through another has nothing to vouch for."""
    async with redis.pipeline(transaction=True) as pipeline:
        for mark, value in (
            (keys.claimed(position.topic, position.partition), position.claimed),
            (keys.committed(position.topic, position.partition), position.committed),
        ):
            if value is not None:
                _RAISE.queue(pipeline, mark=mark, least=value, server=keys.server, wanted_id=during or "")
        await pipeline.execute()


async def lower_committed(redis: Redis, keys: Keys, topic: str, partition: int, to: int) -> None:
    """Lower the `committed` mark to `to`, so that a lane takes a deliberate replay for what it is.

    The only place that lowers a mark; `claimed` stays, for the claims are still there. Only for a group without
    members, after its offset was set: in between, a lane would refuse, which is the safe side.
    """
    async with redis.pipeline(transaction=False) as pipeline:
        _LOWER.queue(pipeline, mark=keys.committed(topic, partition), most=to)
        await pipeline.execute()
