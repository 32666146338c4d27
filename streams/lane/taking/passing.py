"""Pass over what nobody can read: a batch once a person has ordered it, a record alone in its batch, or one that ends
the process, by itself.

Promise: the range is journalled as void before the lane moves on, the marks rise with it, and one dead letter with the
batch's or the record's bytes is committed together with the offset behind it. A crash in between repeats the whole,
once the lane has opened again. Without an order several records are never passed over, and the lane goes on refusing.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import logging

from redis.asyncio import Redis
from ticketgate.agents.plural import counted
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.verdict import Stage
from ticketgate.store.claims import Claims
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.skips import Skips
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.reading.salvage import UnreadableBatch
from ticketgate.streams.lane.taking.dead_letters import ENDS_WORKER
from ticketgate.streams.lane.taking.intake import Unreadable
from ticketgate.streams.lane.taking.records import RecordWriter
from ticketgate.streams.lane.transaction import Outgoing, Output

log = logging.getLogger(__name__)

# The dead letter's and the metrics' code.
UNREADABLE_BATCH = "unreadable_batch"


class PassingOver:
    """What all lanes of a process need to pass over a batch."""

    def __init__(
        self,
        *,
        redis: Redis,
        keys: Keys,
        claims: Claims,
        durability: Durability,
        writer: RecordWriter,
        telemetry: Telemetry,
    ) -> None:
        self._claims = claims
        self._skips = Skips(redis, keys)
        self._voids = Voids(redis, keys, durability)
        self._writer = writer
        self._telemetry = telemetry

    async def pass_over(self, batch: UnreadableBatch, *, token: LaneToken, output: Output) -> int:
        """Pass over the batch; returns the offset that is now committed. Raises `batch` itself if nobody ordered it and
        it may hold more than one record, or be better on a replica.

        `token` is the lane's right to write to Redis. Whatever else is raised, nothing is known.
        """
        topic, partition, offsets = batch.source.topic, batch.source.partition, batch.offsets
        is_ordered = await self._skips.is_ordered(topic, partition, offsets)
        if not is_ordered and not (batch.is_for_good and batch.count == 1):
            raise batch
        first = Coordinate(topic, partition, offsets.start)
        reason = f"{counted(len(offsets), 'offset')}, to {offsets.stop - 1}, given up unread: {batch.reason}"
        malformed = Malformed(Stage.PARSE, UNREADABLE_BATCH, reason)
        letter = self._writer.given_up(first, malformed, batch=batch.data)
        await self._pass(letter, offsets, UNREADABLE_BATCH, token=token, output=output)
        if is_ordered:
            await self._skips.done(topic, partition)
        by = "as ordered" if is_ordered else "one record alone"
        log.warning("%s to %d were given up unread, %s (%s)", first, offsets.stop - 1, by, batch.reason)
        return offsets.stop

    async def give_up(self, record: Unreadable, *, token: LaneToken, output: Output) -> int:
        """Put a record that ends whoever decodes it into dead-letter, as it came; the offset that is now committed."""
        at = record.coordinate
        offsets = range(at.offset, at.offset + 1)
        letter = self._writer.dead_letter(record)
        await self._pass(letter, offsets, ENDS_WORKER, token=token, output=output)
        self._telemetry.fatal_record(at.topic, "dead_letter")
        log.error("%s was given up unread: %s", at, record.malformed.reason)
        return offsets.stop

    async def _pass(
        self, letter: Outgoing, offsets: range, code: str, *, token: LaneToken, output: Output
    ) -> None:
        await self._voids.journal(token, offsets)
        # No keys, but their mark: without it the next opening would take the commit for one whose claims Redis lost.
        await self._claims.claim([], token=token, claimed=offsets.stop)
        await output.commit([letter], offsets.stop)
        await self._claims.mark_committed(token, offsets.stop)
        self._telemetry.records(token.topic, "given_up", len(offsets))
        self._telemetry.dead_lettered(code)
