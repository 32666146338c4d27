"""What both rebuilds have in common: lanes closed before anything is read, and opened after all was written.

    close_lanes   Redis is as it must be; then `rebuilding` stands in the place of its server, so that no lane opens and
                  none claims, whatever its marks say; then every partition is fenced, so that none commits either
    open_lanes    the server stands written again, and what was rebuilt can be relied upon

Promise: workers may stay up. A rebuild that dies, or that ends with gaps, leaves lanes refusing; a second run goes on.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from datetime import timedelta

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed, check_server
from ticketgate.store.keys import Keys
from ticketgate.store.servers import Kind, Look, begin_rebuild, end_rebuild, require_right_clock
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.group import committed_with_metadata
from ticketgate.streams.kafka.reading.scanning import Scanner, broker_errors
from ticketgate.streams.kafka.topics import topic_config
from ticketgate.streams.lane.opening.claims_store import StoreId, make_store, read_store
from ticketgate.streams.lane.opening.fencing import fence_all, sources_of
from ticketgate.streams.lane.opening.vouching import cut_away, why_not


async def close_lanes(settings: Settings, redis: Redis, kind: Kind) -> Look:
    """Returns what `open_lanes` needs. Raises `ConditionFailed`, `Unreachable`, and errors of aiokafka and redis-py."""
    keys = Keys(settings.namespace)
    await check_server(redis, fsync=settings.redis_fsync, replicas=settings.redis_replicas)
    await require_right_clock(redis)
    closed = await begin_rebuild(redis, keys, kind, secrets.token_hex(8))
    sources = await sources_of(settings, redis, keys)
    async with broker_errors(connection_of(settings)):
        await fence_all(settings, redis, keys, [place for places in sources.values() for place in places])
    return closed


async def open_lanes(redis: Redis, keys: Keys, closed: Look, kind: Kind) -> None:
    """Raises `ConditionFailed`, and lanes stay closed, where Redis or the rebuild is another one by now."""
    await end_rebuild(redis, keys, closed, kind)


async def adopt_store(
    settings: Settings, redis: Redis, keys: Keys, group: str, places: Collection[TopicPartition]
) -> None:
    """Give an emptied Redis the id of the claims store back that the group's offsets tell of. Raises
    `ConditionFailed` where it has another one, and `Unreachable`."""
    offsets = await committed_with_metadata(connection_of(settings), group, places)
    told = {store for _, telling in offsets.values() if (store := StoreId.read(telling))}
    here = await read_store(redis, keys)
    if others := sorted(each.namespace for each in told if here is not None and each != here):
        raise ConditionFailed(
            f"group {group!r} works with another claims store, of namespace {others[0]!r}",
            "set TICKETGATE_REDIS, TICKETGATE_NAMESPACE and TICKETGATE_GROUP as the workers have them",
        )
    if others := sorted(each.namespace for each in told if each.namespace != settings.namespace):
        raise ConditionFailed(
            f"group {group!r} belongs to namespace {others[0]!r}",
            "set TICKETGATE_NAMESPACE to that, or another group",
        )
    if here is None and told:
        await make_store(redis, keys, min(told, key=StoreId.tell))


async def find_gaps(
    settings: Settings,
    scanner: Scanner,
    topics: Sequence[str],
    *,
    lives: timedelta,
    kept_what: str,
    is_young: bool,
) -> tuple[str, ...]:
    """What of these outputs cannot vouch for `kept_what`, each a line. is_young: whether an input was committed within
    `lives`, so that an output which holds nothing any more has lost something."""
    connection = connection_of(settings)
    async with admin_client(connection) as client, broker_errors(connection):
        configs = {topic: await topic_config(client, topic) for topic in topics}
    found = [
        str(why)
        for topic, config in configs.items()
        if (why := why_not(topic, config, lives=lives, kept_what=kept_what))
    ]
    places = await scanner.partitions(*topics)
    return (*found, *await cut_away(scanner, places, lives=lives, kept_what=kept_what, is_young=is_young))
