"""Pass over a batch that nobody can read, once a person has ordered it.

Promise: the range is journalled as void before the lane moves on, the marks rise with it, and one dead letter with the
batch's bytes is committed together with the offset behind it. A crash in between repeats the whole, once the lane has
opened again. Without an order nothing happens, and the lane goes on refusing.
Source: DESIGN section 4, step 2; issue 3.
"""

from __future__ import annotations

import logging

from redis.asyncio import Redis
from ticketgate.agents.plural import counted
from ticketgate.codecs.identity import Coordinate
from ticketgate.codecs.malformed import Malformed
from ticketgate.codecs.verdict import Stage
from ticketgate.store.claims import Claims
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.skips import Skips
from ticketgate.store.tokens import LaneToken
from ticketgate.store.voids import Voids
from ticketgate.streams.records import RecordWriter
from ticketgate.streams.salvage import UnreadableBatch
from ticketgate.streams.telemetry import Telemetry
from ticketgate.streams.transaction import Output

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
        """Pass over the batch; returns the offset that is now committed. Raises `batch` itself if nobody ordered it.

        `token` is the lane's right to write to Redis. Whatever else is raised, nothing is known.
        """
        topic, partition, offsets = batch.source.topic, batch.source.partition, batch.offsets
        if not await self._skips.is_ordered(topic, partition, offsets):
            raise batch
        await self._voids.journal(token, offsets)
        # No keys, but their mark: without it the next opening would take the commit for one whose claims Redis lost.
        await self._claims.claim([], token=token, claimed=offsets.stop)
        first = Coordinate(topic, partition, offsets.start)
        reason = f"{counted(len(offsets), 'offset')}, to {offsets.stop - 1}, given up unread: {batch.reason}"
        malformed = Malformed(Stage.PARSE, UNREADABLE_BATCH, reason)
        await output.commit([self._writer.given_up(first, malformed, batch=batch.data)], offsets.stop)
        await self._claims.mark_committed(token, offsets.stop)
        await self._skips.done(topic, partition)
        self._telemetry.records(topic, "given_up", len(offsets))
        self._telemetry.dead_lettered(UNREADABLE_BATCH)
        log.warning("%s to %d were given up unread, as ordered (%s)", first, offsets.stop - 1, batch.reason)
        return offsets.stop
