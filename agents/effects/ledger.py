"""The ledger that the executor and the reconciler write to: what stands for which key, and how far each effect is.

Promise of a ledger: each call is one step, done whole or not at all; a transition happens only from the state and the
sequence that the caller saw (`Moved` otherwise); times are the ledger's own clock, never a worker's. On Redis it is
`store/ledger/ledger.py`, in memory `memory_ledger.py`; one contract suite runs on both.

    prepared --begin_send--> unknown --settle--> committed | rejected | absent
    absent --begin_send, once--> unknown        prepared --settle--> rejected
    rejected, never sent --prepare, another order--> prepared
    rejected, never sent --settle, a person's word--> committed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ticketgate.codecs.verdict import Verdict
from ticketgate.store.ledger.entries import (
    MOST_SENDS,
    Collided,
    Command,
    Entry,
    Moved,
    Open,
    Order,
    Settlement,
    is_open,
)

if TYPE_CHECKING:
    # At run time it would load Redis, which `ticketgate funnel` does without.
    from ticketgate.store.tokens import LaneToken

__all__ = [
    "MOST_SENDS",
    "Collided",
    "Command",
    "EffectLedger",
    "Entry",
    "Moved",
    "Open",
    "Order",
    "Settlement",
    "is_open",
]


class EffectLedger(Protocol):
    """Effect states by key. `token`: the lane's right to write, None for the reconciler and for people.

    A ledger on Redis raises `Superseded`, `ClaimsNotDurable` and redis-py's errors; then nothing may be sent.
    """

    async def prepare(
        self, orders: Sequence[Order], *, token: LaneToken | None, claimed: int
    ) -> tuple[Entry | Collided, ...]:
        """Bind each order's key to its command, or find what stands under it, in order; then raise the mark of the
        token's partition to `claimed`, one past the batch's last offset."""
        ...

    async def begin_send(
        self, entry: Entry, *, verdict: Verdict, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Make a prepared effect, or an absent one that was sent once, unknown: from here on it may stand."""
        ...

    async def settle(
        self, entry: Entry, settlement: Settlement, *, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Write what is known now. What stays open is due for reading back after that many seconds. Without a token,
        what is settled stays on the list of what is due until it is told (`tell`)."""
        ...

    async def tell(self, entry: Entry) -> None:
        """The receipt of this entry is announced; an entry that has moved on since is left alone."""
        ...

    async def hold(self, entry: Entry, *, token: LaneToken | None) -> None:
        """Leave an open effect to a person: it stays open, and is not due any more. One that has moved on is left
        alone."""
        ...

    async def take_due(self, limit: int) -> tuple[Entry, ...]:
        """What is due for reading back or to be told, the longest due first; each is due again after a back-off."""
        ...

    async def read(self, key: str) -> Entry | None:
        """The entry of a key."""
        ...

    async def held(self, limit: int) -> tuple[Entry, ...]:
        """What is open, the oldest first."""
        ...

    async def count_open(self) -> Open:
        """How much is open, and since when."""
        ...
