"""The ledger of effects on Redis: one hash an effect, and two lists of what is open.

Promise: each step is one script, whole or not at all, and changes an entry only from the state and the sequence that
its caller saw. Of two executors one sends. An effect is `unknown` on disk before its request leaves, so a Redis that
lost the end of its log never offers it as merely prepared. One confirmation allows one effect, until it is known that
nothing came of that one. What is settled and told expires, and what is prepared when its record cannot be read any
more; what is open never does. Times are Redis' own.
Relies on: a Redis that forgets nothing (conditions.py), the lane's token (tokens.py), and `claimed` marks of the
dispatch topic, raised with each batch, that show a ledger which was lost (marks.py).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from ticketgate.codecs.records.receipt import EffectState
from ticketgate.codecs.verdict import Verdict
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import mark_committed
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.ledger.entries import (
    Collided,
    Entry,
    Moved,
    Open,
    Order,
    Settlement,
    check_send,
    check_settle,
    is_open,
    is_undone,
)
from ticketgate.store.ledger.entry_fields import EntryUnreadable, read_reply, write_known, write_order
from ticketgate.store.ledger.scripts import (
    BEGIN_SEND,
    HELD,
    HOLD,
    PREPARE,
    READ,
    SETTLE,
    TAKE_DUE,
    TELL,
    Step,
)
from ticketgate.store.script import Value
from ticketgate.store.tokens import LaneToken

log = logging.getLogger(__name__)

# Read back soon at first, for most outcomes are known after a moment; then seldom, for what stays open for hours is a
# person's, and a provider must not be asked about it all day.
BACK_OFF_FIRST = timedelta(seconds=2)
BACK_OFF_MOST = timedelta(minutes=10)


class Ledger:
    """The ledger of one namespace. Writes raise `Superseded`, `LookAgain`, `ClaimsNotDurable` and redis-py's errors;
    what gives the entry of one key raises `EntryUnreadable`.

    `ttl`: how long what is settled is kept, and so for how long a repeated order is recognised; and for how long what
    is prepared waits to be sent.
    """

    def __init__(self, redis: Redis, keys: Keys, *, ttl: timedelta, durability: Durability) -> None:
        self._redis = redis
        self._keys = keys
        self._ttl_ms = round(ttl.total_seconds() * 1000)
        self._durability = durability

    async def prepare(
        self, orders: Sequence[Order], *, token: LaneToken | None, claimed: int
    ) -> tuple[Entry | Collided, ...]:
        """Bind each key to its command or find what stands, in one round trip, and raise the lane's mark to `claimed`.
        What needs a confirmation uses one up, or says by whom it was (`Entry.spent_by`).

        Without a token no mark is raised: it is for tests and for `ticketgate funnel`.
        """
        given: dict[str, Value | Sequence[Value]] = {
            "effects": [self._keys.effect(order.command.key) for order in orders],
            "orders": [part for order in orders for part in _written(order)],
            "lifetime_ms": self._ttl_ms,
            "effects_prefix": self._keys.effect(""),
            "confirmations_prefix": self._keys.confirmation(""),
        }
        if token is None:
            given["due"] = self._keys.effects_open
        else:
            given |= {"mark": self._keys.claimed(token.topic, token.partition), "least": claimed}
        replies = cast("list[list[bytes]]", await self._run(PREPARE, token, given))
        return tuple(_found(order, reply) for order, reply in zip(orders, replies, strict=True))

    async def begin_send(
        self, entry: Entry, *, verdict: Verdict, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Make an entry `unknown`, on disk: from here on the effect may stand. Raises ValueError where it may not."""
        check_send(entry)
        known = write_known(Settlement(state=EffectState.UNKNOWN, verdict=verdict))
        # No mark would miss it, and without it the effect would be sent again.
        given: dict[str, Value] = {
            "open": self._keys.effects_since,
            "known_json": known,
            "look_in_ms": _ms(read_back_in_s),
        }
        return await self._step(BEGIN_SEND, entry, token, given, is_rare=True)

    async def settle(
        self, entry: Entry, settlement: Settlement, *, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Write what is known now. Without a token it stays to be told (`tell`). Raises ValueError where there is no
        such transition."""
        check_settle(entry, settlement)
        given: dict[str, Value] = {
            "open": self._keys.effects_since,
            "known_json": write_known(settlement),
            "look_in_ms": _ms(read_back_in_s),
            "new_state": settlement.state,
            "is_open": int(is_open(settlement.state, settlement.settled_by)),
            "is_told": int(token is not None),
            "is_undone": int(
                is_undone(settlement.state, entry.sends, settlement.verdict, settlement.settled_by)
            ),
            "lifetime_ms": self._ttl_ms,
        }
        # Lost, it is read back again; but what a person said would be lost for good.
        is_rare = settlement.settled_by is not None
        return await self._step(SETTLE, entry, token, given, is_rare=is_rare)

    async def tell(self, entry: Entry) -> None:
        """The receipt of this entry is announced; an entry that has moved on is left alone."""
        given = {"is_open": int(entry.is_open), "lifetime_ms": self._ttl_ms}
        await self._step(TELL, entry, None, given)

    async def hold(self, entry: Entry, *, token: LaneToken | None) -> None:
        """Leave an open effect to a person: it stays open, and is not due any more; one that has moved on is left
        alone."""
        if entry.is_open:
            await self._step(HOLD, entry, token, {})

    async def take_due(self, limit: int) -> tuple[Entry, ...]:
        """What is due, the longest due first; each is due again after a back-off, unless it is settled till then. What
        cannot be read is logged, and keeps nothing else waiting."""
        reply = await TAKE_DUE(
            self._redis,
            due=self._keys.effects_open,
            open=self._keys.effects_since,
            prefix=self._keys.effect(""),
            most=limit,
            first_pause_ms=_ms(BACK_OFF_FIRST.total_seconds()),
            longest_pause_ms=_ms(BACK_OFF_MOST.total_seconds()),
        )
        entries, unreadable = _parted(reply)
        for each in unreadable:
            log.error("%s", each)
        return entries

    async def read(self, key: str) -> Entry | None:
        """The entry of a key."""
        reply = await READ(self._redis, effect=self._keys.effect(key))
        return read_reply(key, cast("list[bytes]", reply))

    async def held(self, limit: int) -> tuple[Entry, ...]:
        """What is open and can be read, the oldest first."""
        return (await self.listed(limit))[0]

    async def listed(self, limit: int) -> tuple[tuple[Entry, ...], tuple[EntryUnreadable, ...]]:
        """The oldest `limit` that are open: those that can be read, and those that cannot."""
        prefix = self._keys.effect("")
        return _parted(await HELD(self._redis, open=self._keys.effects_since, prefix=prefix, most=limit))

    async def count_open(self) -> Open:
        """How much is open, and since when."""
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.zcard(self._keys.effects_since)
            pipeline.zrange(self._keys.effects_since, 0, 0, withscores=True)
            pipeline.time()
            count, oldest, (seconds, microseconds) = await pipeline.execute()
        now_ms = seconds * 1000 + microseconds // 1000
        return Open(count, max(0.0, now_ms - oldest[0][1]) / 1000 if oldest else 0.0)

    async def mark_committed(self, token: LaneToken, offset: int, witness: Witness | None = None) -> None:
        """See `marks.mark_committed`."""
        await mark_committed(self._redis, self._keys, token, offset, witness)

    async def _step(
        self,
        step: Step,
        entry: Entry,
        token: LaneToken | None,
        given: Mapping[str, Value],
        *,
        is_rare: bool = False,
    ) -> Entry | Moved:
        named: dict[str, Value] = {
            "effect": self._keys.effect(entry.key),
            "due": self._keys.effects_open,
            "effect_key": entry.key,
            "seen_state": entry.state,
            "seen_sequence": entry.sequence,
        }
        reply = await self._run(step, token, {**named, **given}, is_rare=is_rare)
        is_so, written = cast("tuple[bytes, list[bytes]]", reply)
        stands = read_reply(entry.key, written)
        return stands if is_so == b"1" and stands is not None else Moved(stands)

    async def _run(
        self,
        step: Step,
        token: LaneToken | None,
        given: Mapping[str, Value | Sequence[Value]],
        *,
        is_rare: bool = False,
    ) -> object:
        """Run one step, guarded by a lane's token if there is one, and wait until it is on the disks it must be on."""
        async with self._redis.pipeline(transaction=False) as pipeline:
            if token is None:
                step.outside.queue(pipeline, **given)
            else:
                step.in_lane.queue(pipeline, token=token.name, own_token=token.value, **given)
            (reply,) = await self._durability.execute(pipeline, self._keys, is_rare=is_rare)
        return reply


def _written(order: Order) -> tuple[Value, ...]:
    """An order as the scripts read it."""
    command = order.command
    return command.key, command.content, write_order(order), ",".join(order.confirmations)


def _found(order: Order, reply: Sequence[bytes]) -> Entry | Collided:
    entry = read_reply(order.command.key, reply)
    if entry is None:
        raise RuntimeError(f"effect {order.command.key!r} was prepared and is not there")
    return entry if entry.order.command.content == order.command.content else Collided(order, entry)


def _parted(reply: object) -> tuple[tuple[Entry, ...], tuple[EntryUnreadable, ...]]:
    """The entries of a list of keys and hashes by turns, and what of them cannot be read."""
    flat = cast("list[bytes | list[bytes]]", reply)
    entries: list[Entry] = []
    unreadable: list[EntryUnreadable] = []
    for key, fields in zip(flat[::2], flat[1::2], strict=True):
        try:
            entry = read_reply(cast("bytes", key).decode(), cast("list[bytes]", fields))
        except EntryUnreadable as err:
            unreadable.append(err)
        else:
            entries += [] if entry is None else [entry]
    return tuple(entries), tuple(unreadable)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
