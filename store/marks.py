"""How far each partition got, as Redis remembers it: the marks that show whether Redis or Kafka forgot something.

Promise: marks only rise, but for `lower_committed`. `claimed` is one past the last offset whose keys were claimed,
`committed` the highest committed offset that a lane has seen. A committed offset above `claimed` means that Redis
lost claims; one below `committed` means that Kafka's offsets were reset. Source: DESIGN section 4, step 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from ticketgate.store.keys import Keys

# KEYS[1] a mark; ARGV[1] its least value. A zombie that was fenced may still write marks, older than its
# successor's: a mark that fell would look like lost claims at the next opening.
_RAISE = """
local found = tonumber(redis.call('GET', KEYS[1]) or '-1')
if found < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 0
"""


# KEYS[1] a mark that may be there; ARGV[1] its greatest value.
_LOWER = """
local found = tonumber(redis.call('GET', KEYS[1]) or '-1')
if found > tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return 0
"""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a lane stands: `claimed` is one past the last offset of the batch that is being claimed; `committed` the
    input offset of its last commit, or None before the first."""

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
    claimed, committed = await redis.mget(keys.claimed(topic, partition), keys.committed(topic, partition))
    return Marks(None if claimed is None else int(claimed), None if committed is None else int(committed))


def raise_mark(pipeline: Pipeline, name: str, value: int) -> None:
    """Queue the raising of a mark to at least `value`."""
    pipeline.eval(_RAISE, 1, name, value)


async def raise_marks(redis: Redis, keys: Keys, position: Position) -> None:
    """Raise a partition's marks to `position`."""
    async with redis.pipeline(transaction=True) as pipeline:
        raise_mark(pipeline, keys.claimed(position.topic, position.partition), position.claimed)
        if position.committed is not None:
            raise_mark(pipeline, keys.committed(position.topic, position.partition), position.committed)
        await pipeline.execute()


async def lower_committed(redis: Redis, keys: Keys, topic: str, partition: int, to: int) -> None:
    """Lower the `committed` mark to `to`, so that a lane takes a deliberate replay for what it is.

    The only place that lowers a mark; `claimed` stays, for the claims are still there. Only for a group without
    members, after its offset was set: in between, a lane would refuse, which is the safe side.
    """
    async with redis.pipeline(transaction=False) as pipeline:
        pipeline.eval(_LOWER, 1, keys.committed(topic, partition), to)
        await pipeline.execute()
