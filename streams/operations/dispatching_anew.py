"""`ledger dispatch`: an effect that was stopped before it was sent is asked for once more.

    1  the ledger says that it was rejected, and nothing was ever sent
    2  its record is read from dispatch, as its order says where it lies
    3  the record goes into the same partition again, with that effect alone, as made from the first one

Promise: to a lane it is another order under a key that was left free: what stands against it now stops it again, and
else it is carried out once, however often this is done. No other effect of the record comes again. As it was made from
`dispatch`, it is neither a second outcome of an input to `audit` nor a claim to `claims rebuild`.
See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiokafka import ConsumerRecord, TopicPartition
from redis.asyncio import Redis
from ticketgate.agents.effects.ledger import Entry
from ticketgate.codecs.records.headers import COORDINATE
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.values.strict import decode, encode
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.scanning import broker_errors, open_scanner
from ticketgate.streams.lane.opening.conditions import require_namespace
from ticketgate.streams.lane.transaction import Outgoing, abandon
from ticketgate.streams.roles.effects.effect_ledger import open_ledger
from ticketgate.streams.roles.effects.effects_role import receipts_producer
from ticketgate.streams.roles.effects.reconciling import SEND_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Stopped:
    """An effect that was stopped before it was sent; `source` is where its record lies, `record` what is sent there."""

    entry: Entry
    source: Coordinate
    record: Outgoing


async def find_stopped(settings: Settings, redis: Redis, key: str) -> Stopped:
    """1 and 2. Raises `ConditionFailed` where there is nothing to dispatch anew, `Unreachable`, redis-py's errors."""
    entry = await open_ledger(settings, redis).read(key)
    if entry is None:
        raise ConditionFailed(f"effect {key} is not in the ledger", "give the key that its receipt names")
    if not entry.is_stopped:
        sent = " after it was sent" if entry.sends else ""
        raise ConditionFailed(
            f"effect {key} is {entry.state}{sent}, and keeps its key",
            "only what was rejected before it was sent is dispatched anew",
        )
    await require_namespace(settings, redis, "effects")
    source = entry.order.source
    record = None if source is None else await _read(settings, source)
    again = None if record is None else _again(record, key, max_bytes=settings.max_record_bytes * 2)
    if source is None or again is None:
        raise ConditionFailed(
            f"the record that asked for effect {key} is no longer at {source or 'a place that is known'}",
            "have it proposed or decided anew: the key is free for another order",
        )
    return Stopped(entry, source, again)


async def dispatch_anew(settings: Settings, stopped: Stopped) -> Coordinate:
    """3. Where the record lies now. Raises `Unreachable`, and then it may lie there; a second one does no harm."""
    connection, record = connection_of(settings), stopped.record
    producer = receipts_producer(settings)
    try:
        async with broker_errors(connection), asyncio.timeout(SEND_TIMEOUT_S):
            await producer.start()
            sent = await producer.send_and_wait(
                record.topic,
                record.value,
                key=record.key,
                partition=stopped.source.partition,
                headers=list(record.headers),
            )
    finally:
        await abandon(producer)
    return Coordinate(sent.topic, sent.partition, sent.offset)


async def _read(settings: Settings, source: Coordinate) -> ConsumerRecord | None:
    place = TopicPartition(source.topic, source.partition)
    async with open_scanner(settings) as scanner:
        extents = await scanner.extents(await scanner.partitions(source.topic))
        # Beyond the end the scanner would wait for what never comes.
        if source.offset not in extents.get(place, ()):
            return None
        async for records in scanner.read({place: range(source.offset, source.offset + 1)}):
            return records[0]
    return None


def _again(record: ConsumerRecord, key: str, *, max_bytes: int) -> Outgoing | None:
    """The record with one of its effects, made from itself; None if it does not ask for that one."""
    value = None if record.value is None else decode(record.value, max_bytes=max_bytes, is_our_own=True)
    if not isinstance(value, dict) or not isinstance(effects := value.get("effects"), list):
        return None
    wanted = [each for each in effects if isinstance(each, dict) and each.get("idempotency_key") == key]
    if not wanted:
        return None
    made_from = str(Coordinate(record.topic, record.partition, record.offset)).encode()
    others = [header for header in record.headers if header[0] != COORDINATE]
    return Outgoing(
        topic=record.topic,
        key=record.key,
        value=encode({**value, "effects": wanted}),
        headers=(*others, (COORDINATE, made_from)),
    )
