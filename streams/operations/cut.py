"""Whether a topic still is what a group's marks were made from, for who sets offsets while no worker runs.

Promise: no command that says that it passes over nothing goes on in a topic that was made anew, or that lost its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.witnesses import Witness, read_witnesses
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.internals import client_of_admin
from ticketgate.streams.kafka.reading.scanning import Scanner, broker_errors
from ticketgate.streams.lane.opening.origin import TopicCut, TopicMadeAnew, anew_remedy, require_topic_id
from ticketgate.streams.operations.inputs import Source
from ticketgate.streams.roles.effects.dispatched import take_in_dispatched


async def require_same_topic(
    scanner: Scanner, redis: Redis, keys: Keys, sources: Sequence[TopicPartition], *, of: Source
) -> bool:
    """The topic has the id that the marks were made from; whether it has one at all.

    Raises `ConditionFailed`, `Unreachable` and redis-py's errors.
    """
    has_id = False
    async with admin_client(scanner.connection) as client, broker_errors(scanner.connection):
        for each in sources:
            known = await read_witnesses(redis, keys, each.topic, each.partition)
            try:
                found = await require_topic_id(
                    client_of_admin(client),
                    each.topic,
                    known.topic_id,
                    remedy=anew_remedy(of.replay, of.has_claims),
                )
            except TopicMadeAnew as err:
                raise ConditionFailed(str(err), err.handling.remedy) from err
            has_id = found is not None
    return has_id


async def require_whole(
    scanner: Scanner,
    redis: Redis,
    keys: Keys,
    sources: Sequence[TopicPartition],
    *,
    of: Source,
    has_id: bool,
) -> None:
    """No partition lost the last record that was read from it. Raises as `require_same_topic`."""
    extents = await scanner.extents(sources)
    for each, extent in extents.items():
        witness = (await read_witnesses(redis, keys, each.topic, each.partition)).last
        if witness is None or witness.offset < extent.start:
            continue
        if witness.offset in extent and await _at(scanner, each, witness.offset) == witness:
            continue
        anew = None if has_id else anew_remedy(of.replay, of.has_claims)
        cut = TopicCut(each, witness, end=extent.stop, replay=of.replay, if_made_anew=anew)
        raise ConditionFailed(str(cut), cut.handling.remedy)


async def not_in_ledger(
    scanner: Scanner, redis: Redis, keys: Keys, source: TopicPartition, *, max_bytes: int
) -> int:
    """The first record of `dispatch` with an effect that the ledger does not know; the end if it knows all.

    An effect of a tool that is carried out elsewhere is in no ledger; the lanes leave it to others again.
    Raises as `require_same_topic`.
    """
    extent = (await scanner.extents([source]))[source]
    async for records in scanner.read({source: extent}):
        intake = take_in_dispatched(records, max_bytes=max_bytes)
        wanted = [
            (each.coordinate.offset, command.key) for each in intake.arrivals for command in each.commands
        ]
        async with redis.pipeline(transaction=False) as pipeline:
            for _, key in wanted:
                pipeline.exists(keys.effect(key))
            known = await pipeline.execute()
        for (offset, _), is_known in zip(wanted, known, strict=True):
            if not is_known:
                return offset
    return extent.stop


async def _at(scanner: Scanner, source: TopicPartition, offset: int) -> Witness | None:
    async for records in scanner.read({source: range(offset, offset + 1)}):
        for record in records:
            return Witness.of(record)
    return None
