"""Claims and attempts out of what was emitted on them, in batches.

Promise: a claim or attempt that stands is never changed. What was made from another topic than the inputs, such as the
receipt of an effect, is no claim, whatever key it bears.
Relies on: our headers, which no producer can forge, and lanes that refuse meanwhile. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aiokafka import ConsumerRecord
from redis.asyncio import Redis
from ticketgate.agents.funnel.history import written_attempt
from ticketgate.codecs.records import headers as names
from ticketgate.codecs.records.case_decision import CASE_DECISION_SCHEMA, decode_case_decision
from ticketgate.codecs.records.headers import header
from ticketgate.codecs.records.settled import SETTLED_SCHEMA
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.verdict import Stage
from ticketgate.store.attempts import RestoredAttempts, WrittenAttempt, restore_attempts
from ticketgate.store.keys import Keys
from ticketgate.store.rebuild import Restored, Written, lengthen, restore
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.operations.outcomes import read_claim, read_settles

# Claims or attempts in one round trip to Redis.
BATCH = 1_000
MOST_NAMED = 10

_SETTLED = SETTLED_SCHEMA.partition("/")[0].encode()
_CASE_DECISION = CASE_DECISION_SCHEMA.partition("/")[0].encode()


class Restoring:
    """Restores what outputs tell and adds up what became of it. `inputs`: the topics that claims are made from."""

    def __init__(
        self, settings: Settings, redis: Redis, keys: Keys, *, inputs: Collection[str], dry_run: bool
    ) -> None:
        self._settings, self._redis, self._keys, self._dry_run = settings, redis, keys, dry_run
        self._inputs = frozenset(inputs)
        self._claims: list[Written] = []
        self._attempts: list[WrittenAttempt] = []
        self._settled: list[Written] = []
        self.outputs = 0
        self.without_identity = 0
        self.of_others = 0
        self.conflicts = 0
        self.claims = Restored()
        self.attempts = RestoredAttempts()
        self.attempts_unknown = 0

    async def add(self, records: Sequence[ConsumerRecord]) -> None:
        """Take outputs in."""
        for record in records:
            self.outputs += 1
            claim = read_claim(record)
            if claim is None:
                is_told = (header(record.headers, names.SCHEMA) or b"").startswith(_SETTLED)
                self.of_others += is_told
                self.without_identity += not is_told
                continue
            if claim.coordinate.topic not in self._inputs:
                self.of_others += 1
                continue
            self._claims.append(Written(claim, record.timestamp))
            if (ticket := read_settles(record)) is not None:
                self._settled.append(Written(ticket, record.timestamp))
            self._add_attempt(record)
            if len(self._claims) >= BATCH:
                await self.finish()

    async def finish(self) -> None:
        """Restore what was taken in."""
        claims, self._claims = self._claims, []
        attempts, self._attempts = self._attempts, []
        settled, self._settled = self._settled, []
        if claims:
            done = await restore(
                self._redis, self._keys, claims, ttl=self._settings.claim_ttl, dry_run=self._dry_run
            )
            self.conflicts += len(done.conflicts)
            self.claims = Restored(
                self.claims.restored + done.restored,
                self.claims.present + done.present,
                self.claims.expired + done.expired,
                (*self.claims.conflicts, *done.conflicts)[:MOST_NAMED],
            )
        # Their own records in review restored most of them, and with a lifetime that ends earlier.
        await lengthen(self._redis, self._keys, settled, ttl=self._settings.claim_ttl, dry_run=self._dry_run)
        if attempts:
            told = await restore_attempts(
                self._redis, self._keys, attempts, ttl=self._settings.claim_ttl, dry_run=self._dry_run
            )
            self.attempts = RestoredAttempts(
                self.attempts.restored + told.restored,
                self.attempts.present + told.present,
                self.attempts.expired + told.expired,
            )

    def _add_attempt(self, record: ConsumerRecord) -> None:
        schema = header(record.headers, names.SCHEMA) or b""
        if schema.partition(b"/")[0] != _CASE_DECISION or record.value is None:
            return
        decision = decode_case_decision(record.value, max_bytes=max(len(record.value), 1))
        if isinstance(decision, Malformed):
            self.attempts_unknown += 1
            return
        attempt = written_attempt(decision, namespace=self._settings.namespace, at_ms=record.timestamp)
        if attempt is not None:
            self._attempts.append(attempt)
        elif decision.verdict.stage is not Stage.IDENTITY:
            self.attempts_unknown += 1
