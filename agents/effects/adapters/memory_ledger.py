"""The ledger of effects in memory: for `ticketgate funnel` and for tests. It forgets with its process.

Promise: it does what the one on Redis does (one contract suite runs on both), but that nothing expires and no lane has
a token to be superseded by. The clock is given, so a test can let a settle time pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ticketgate.codecs.records.receipt import EffectState
from ticketgate.codecs.verdict import Verdict
from ticketgate.store.ledger.entries import (
    Collided,
    Entry,
    Moved,
    Open,
    Order,
    Settlement,
    check_send,
    check_settle,
    is_free,
)

if TYPE_CHECKING:
    from ticketgate.store.tokens import LaneToken

# As store/ledger/ledger.py has them.
BACK_OFF_FIRST_S = 2.0
BACK_OFF_MOST_S = 600.0


@dataclass(slots=True)
class _Row:
    entry: Entry
    sent_at: float = 0.0
    reads: int = 0


class Used:
    """Which effect used up which confirmation."""

    def __init__(self) -> None:
        self._holders: dict[str, _Row] = {}

    def confirm(self, row: _Row, order: Order) -> None:
        """Give an effect the first confirmation of its order that no other holds, or write down who does."""
        by: str | None = None
        for digest in order.confirmations:
            holder = self._holders.get(digest)
            if holder is None or holder.entry.key == row.entry.key or _lets_go(holder.entry, digest):
                self._holders[digest] = row
                row.entry = replace(row.entry, confirmation=digest, spent_by=None)
                return
            by = by or holder.entry.key
        row.entry = replace(row.entry, spent_by=by)


def _lets_go(entry: Entry, digest: str) -> bool:
    return entry.is_undone or entry.confirmation != digest


class LedgerInMemory:
    """Effects by key. `clock` gives seconds since 1970. used: who used up which confirmation, for ledgers that share
    them."""

    def __init__(self, *, clock: Callable[[], float] = lambda: 0.0, used: Used | None = None) -> None:
        self._clock = clock
        self._used = Used() if used is None else used
        self._rows: dict[str, _Row] = {}
        self._due: dict[str, float] = {}
        self._since: dict[str, float] = {}

    async def prepare(
        self, orders: Sequence[Order], *, token: LaneToken | None, claimed: int
    ) -> tuple[Entry | Collided, ...]:
        """Bind each key to its command, or find what stands under it."""
        found: list[Entry | Collided] = []
        for order in orders:
            row = self._rows.get(order.command.key)
            if row is None or is_free(row.entry, order):
                entry = Entry(
                    order=order,
                    state=EffectState.PREPARED,
                    sequence=1 if row is None else row.entry.sequence + 1,
                    sends=0,
                    age_s=0.0,
                    at=self._now(),
                )
                row = self._rows[order.command.key] = _Row(entry)
            is_same = row.entry.order.command.content == order.command.content
            if is_same and row.entry.state is EffectState.PREPARED and row.entry.confirmation is None:
                self._used.confirm(row, order)
            stands = self._shown(row)
            found.append(stands if is_same else Collided(order, stands))
        return tuple(found)

    async def begin_send(
        self, entry: Entry, *, verdict: Verdict, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Make an entry `unknown`. Raises ValueError where it may not be sent."""
        check_send(entry)
        row = self._rows.get(entry.key)
        if row is None or not _is_as_seen(row.entry, entry):
            return Moved(None if row is None else self._shown(row))
        row.sent_at, row.reads = self._clock(), 0
        row.entry = replace(
            row.entry,
            state=EffectState.UNKNOWN,
            sequence=entry.sequence + 1,
            sends=entry.sends + 1,
            at=self._now(),
            verdict=verdict,
            provider_id=None,
            observed=None,
            is_told=True,
        )
        self._due[entry.key] = self._clock() + read_back_in_s
        self._since.setdefault(entry.key, self._clock())
        return self._shown(row)

    async def settle(
        self, entry: Entry, settlement: Settlement, *, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Write what is known now. Without a token it stays to be told."""
        check_settle(entry, settlement)
        row = self._rows.get(entry.key)
        if row is None or not _is_as_seen(row.entry, entry):
            return Moved(None if row is None else self._shown(row))
        row.entry = replace(
            row.entry,
            state=settlement.state,
            sequence=entry.sequence + 1,
            at=self._now(),
            verdict=settlement.verdict,
            status=settlement.status,
            provider_id=settlement.provider_id,
            observed=settlement.observed,
            settled_by=settlement.settled_by,
            judged_again=settlement.judged_again,
            is_told=token is not None,
        )
        if row.entry.is_open:
            self._since.setdefault(entry.key, self._clock())
        else:
            self._since.pop(entry.key, None)
        if row.entry.is_open or not row.entry.is_told:
            self._due[entry.key] = self._clock() + read_back_in_s
        else:
            self._due.pop(entry.key, None)
        return self._shown(row)

    async def tell(self, entry: Entry) -> None:
        """The receipt of this entry is announced; an entry that has moved on is left alone."""
        row = self._rows.get(entry.key)
        if row is None or not _is_as_seen(row.entry, entry):
            return
        row.entry = replace(row.entry, is_told=True)
        if not row.entry.is_open:
            self._due.pop(entry.key, None)

    async def hold(self, entry: Entry, *, token: LaneToken | None) -> None:
        """Leave an open effect to a person."""
        row = self._rows.get(entry.key)
        if row is not None and _is_as_seen(row.entry, entry) and entry.is_open:
            self._due.pop(entry.key, None)

    async def take_due(self, limit: int) -> tuple[Entry, ...]:
        """What is due, the longest due first; each is due again after a back-off."""
        now = self._clock()
        due = sorted((at, key) for key, at in self._due.items() if at <= now)[:limit]
        for _, key in due:
            row = self._rows[key]
            row.reads += 1
            self._due[key] = now + min(BACK_OFF_MOST_S, BACK_OFF_FIRST_S * 2 ** min(row.reads - 1, 30))
        return tuple(self._shown(self._rows[key]) for _, key in due)

    async def read(self, key: str) -> Entry | None:
        """The entry of a key."""
        row = self._rows.get(key)
        return None if row is None else self._shown(row)

    async def held(self, limit: int) -> tuple[Entry, ...]:
        """What is open, the oldest first."""
        oldest = sorted((at, key) for key, at in self._since.items())[:limit]
        return tuple(self._shown(self._rows[key]) for _, key in oldest)

    async def count_open(self) -> Open:
        """How much is open, and since when."""
        oldest_s = self._clock() - min(self._since.values()) if self._since else 0.0
        return Open(len(self._since), max(0.0, oldest_s))

    def _shown(self, row: _Row) -> Entry:
        age_s = max(0.0, self._clock() - row.sent_at) if row.entry.sends else 0.0
        return replace(row.entry, age_s=age_s)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _is_as_seen(stands: Entry, seen: Entry) -> bool:
    return (stands.state, stands.sequence) == (seen.state, seen.sequence)
