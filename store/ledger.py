"""The ledger of effects on Redis: one hash an effect, and two lists of what is open.

Promise: each step is one script, whole or not at all, and changes an entry only from the state and the sequence that
its caller saw. Of two executors one sends. An effect is `unknown` on disk before its request leaves, so a Redis that
lost the end of its log never offers it as merely prepared. What is settled and told expires, and what is prepared when
its record cannot be read any more; what is open never does. Times are Redis' own.
Relies on: a Redis that forgets nothing (conditions.py), the lane's token (tokens.py), and `claimed` marks of the
dispatch topic, raised with each batch, that show a ledger which was lost (marks.py).
Source: DESIGN section 7.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from ticketgate.codecs.receipt import EffectState
from ticketgate.codecs.verdict import Verdict
from ticketgate.store.durability import Durability
from ticketgate.store.entries import (
    Collided,
    Entry,
    Moved,
    Open,
    Order,
    Settlement,
    check_send,
    check_settle,
    is_open,
)
from ticketgate.store.entry_fields import EntryUnreadable, read_reply, write_known, write_order
from ticketgate.store.keys import Keys
from ticketgate.store.marks import mark_committed
from ticketgate.store.servers import SOUND, WHOLE
from ticketgate.store.tokens import GUARD, LaneToken
from ticketgate.store.witnesses import Witness

log = logging.getLogger(__name__)

# Read back soon at first, for most outcomes are known after a moment; then seldom, for what stays open for hours is a
# person's, and a provider must not be asked about it all day.
BACK_OFF_FIRST = timedelta(seconds=2)
BACK_OFF_MOST = timedelta(minutes=10)

# Redis' time in ms; and an entry as the scripts return it: the time, then the hash, flat.
_NOW = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function entry(name)
  local found = redis.call('HGETALL', name)
  table.insert(found, 1, string.format('%.0f', now))
  return found
end
"""

# KEYS[1] the token, KEYS[2] the claimed mark, then the effects. ARGV[1] the lane's token, ARGV[2] the mark, then for
# each effect its content and its order, and last the lifetime in ms of what is prepared. Returns the entries as they
# stand. The mark comes last of all. What was rejected before anything was sent leaves its key to another order
# (`entries.is_free`). What is prepared lives for as long as its record can be read, from when a lane last took it up.
_PREPARE = """
local found = {}
for i = 3, #KEYS do
  local stands = redis.call('HMGET', KEYS[i], 'state', 'sends', 'order')
  local is_free = stands[1] == 'rejected' and stands[2] == '0' and stands[3] ~= ARGV[2 * i - 2]
  if not stands[1] or is_free then
    redis.call('HSET', KEYS[i], 'content', ARGV[2 * i - 3], 'order', ARGV[2 * i - 2],
      'state', 'prepared', 'sends', 0, 'at', now, 'told', 1)
    redis.call('HINCRBY', KEYS[i], 'sequence', 1)
    redis.call('HDEL', KEYS[i], 'known', 'restored')
    stands[1] = 'prepared'
  end
  if stands[1] == 'prepared' then redis.call('PEXPIRE', KEYS[i], ARGV[#ARGV]) end
  found[i - 2] = entry(KEYS[i])
end
if ARGV[2] ~= '' and tonumber(redis.call('GET', KEYS[2]) or '-1') < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[2])
end
return found
"""

# KEYS[1] the token, KEYS[2] the effect, KEYS[3] what to look at again, KEYS[4] what is open. ARGV[1] the lane's token,
# ARGV[2] and ARGV[3] the state and the sequence seen, ARGV[4] the effect's key, ARGV[5] what is known, ARGV[6] ms until
# it is looked at. Returns whether it was so, and the entry.
_COMPARE = """
local stands = redis.call('HMGET', KEYS[2], 'state', 'sequence')
if stands[1] ~= ARGV[2] or stands[2] ~= ARGV[3] then return {'0', entry(KEYS[2])} end
"""
_BEGIN_SEND = (
    _COMPARE
    + """
redis.call('HSET', KEYS[2], 'state', 'unknown', 'known', ARGV[5], 'at', now, 'sent', now, 'reads', 0, 'told', 1)
redis.call('HINCRBY', KEYS[2], 'sequence', 1)
redis.call('HINCRBY', KEYS[2], 'sends', 1)
redis.call('PERSIST', KEYS[2])
redis.call('ZADD', KEYS[3], now + tonumber(ARGV[6]), ARGV[4])
redis.call('ZADD', KEYS[4], 'NX', now, ARGV[4])
return {'1', entry(KEYS[2])}
"""
)

# And ARGV[7] the new state, ARGV[8] whether it is open, ARGV[9] whether it is told, ARGV[10] the lifetime in ms of what
# is neither to be looked at nor to be told.
_SETTLE = (
    _COMPARE
    + """
redis.call('HSET', KEYS[2], 'state', ARGV[7], 'known', ARGV[5], 'at', now, 'told', ARGV[9])
redis.call('HINCRBY', KEYS[2], 'sequence', 1)
if ARGV[8] == '1' then
  redis.call('ZADD', KEYS[4], 'NX', now, ARGV[4])
else
  redis.call('ZREM', KEYS[4], ARGV[4])
end
if ARGV[8] == '1' or ARGV[9] == '0' then
  redis.call('ZADD', KEYS[3], now + tonumber(ARGV[6]), ARGV[4])
  redis.call('PERSIST', KEYS[2])
else
  redis.call('ZREM', KEYS[3], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[10])
end
return {'1', entry(KEYS[2])}
"""
)

# KEYS and ARGV[1] to ARGV[4] as above, ARGV[5] whether the entry is open, ARGV[6] the lifetime in ms.
_TELL = (
    _COMPARE
    + """
redis.call('HSET', KEYS[2], 'told', 1)
if ARGV[5] == '0' then
  redis.call('ZREM', KEYS[3], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end
return {'1', entry(KEYS[2])}
"""
)

_HOLD = (
    _COMPARE
    + """
redis.call('ZREM', KEYS[3], ARGV[4])
return {'1', entry(KEYS[2])}
"""
)

# KEYS[1] what to look at again, KEYS[2] what is open. ARGV[1] what an effect's name begins with, ARGV[2] how many at
# most, ARGV[3] and ARGV[4] the first and the longest pause in ms. Returns keys and entries by turns.
_TAKE_DUE = """
local found = {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])) do
  local name = ARGV[1] .. key
  if redis.call('EXISTS', name) == 0 then
    redis.call('ZREM', KEYS[1], key)
    redis.call('ZREM', KEYS[2], key)
  else
    local reads = redis.call('HINCRBY', name, 'reads', 1)
    local pause = math.min(tonumber(ARGV[4]), tonumber(ARGV[3]) * 2 ^ math.min(reads - 1, 30))
    redis.call('ZADD', KEYS[1], now + pause, key)
    found[#found + 1] = key
    found[#found + 1] = entry(name)
  end
end
return found
"""

# KEYS[1] what is open, KEYS[2] what an effect's name begins with; ARGV[1] how many at most. As above.
_HELD = """
local found = {}
for _, key in ipairs(redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1)) do
  found[#found + 1] = key
  found[#found + 1] = entry(KEYS[2] .. key)
end
return found
"""


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

        Without a token no mark is raised: it is for tests and for `ticketgate funnel`.
        """
        mark = "" if token is None else self._keys.claimed(token.topic, token.partition)
        names = [mark or self._keys.effects_open]
        arguments: list[str | bytes | int] = [claimed if mark else ""]
        for order in orders:
            names.append(self._keys.effect(order.command.key))
            arguments += [order.command.content, write_order(order)]
        arguments.append(self._ttl_ms)
        replies = cast("list[list[bytes]]", await self._run(_PREPARE, names, arguments, token))
        return tuple(_found(order, reply) for order, reply in zip(orders, replies, strict=True))

    async def begin_send(
        self, entry: Entry, *, verdict: Verdict, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Make an entry `unknown`, on disk: from here on the effect may stand. Raises ValueError where it may not."""
        check_send(entry)
        known = write_known(Settlement(state=EffectState.UNKNOWN, verdict=verdict))
        # No mark would miss it, and without it the effect would be sent again.
        return await self._step(_BEGIN_SEND, entry, [known, _ms(read_back_in_s)], token, is_rare=True)

    async def settle(
        self, entry: Entry, settlement: Settlement, *, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        """Write what is known now. Without a token it stays to be told (`tell`). Raises ValueError where there is no
        such transition."""
        check_settle(entry, settlement)
        arguments: list[str | bytes | int] = [
            write_known(settlement),
            _ms(read_back_in_s),
            settlement.state,
            int(is_open(settlement.state, settlement.settled_by)),
            int(token is not None),
            self._ttl_ms,
        ]
        # Lost, it is read back again; but what a person said would be lost for good.
        is_rare = settlement.settled_by is not None
        return await self._step(_SETTLE, entry, arguments, token, is_rare=is_rare)

    async def tell(self, entry: Entry) -> None:
        """The receipt of this entry is announced; an entry that has moved on is left alone."""
        await self._step(_TELL, entry, [int(entry.is_open), self._ttl_ms], None)

    async def hold(self, entry: Entry, *, token: LaneToken | None) -> None:
        """Leave an open effect to a person: it stays open, and is not due any more; one that has moved on is left
        alone."""
        if entry.is_open:
            await self._step(_HOLD, entry, [], token)

    async def take_due(self, limit: int) -> tuple[Entry, ...]:
        """What is due, the longest due first; each is due again after a back-off, unless it is settled till then. What
        cannot be read is logged, and keeps nothing else waiting."""
        names = (self._keys.effects_open, self._keys.effects_since)
        pauses = (_ms(BACK_OFF_FIRST.total_seconds()), _ms(BACK_OFF_MOST.total_seconds()))
        reply = await self._redis.eval(_NOW + _TAKE_DUE, 2, *names, self._keys.effect(""), limit, *pauses)
        entries, unreadable = _parted(reply)
        for each in unreadable:
            log.error("%s", each)
        return entries

    async def read(self, key: str) -> Entry | None:
        """The entry of a key."""
        reply = await self._redis.eval(_NOW + "return entry(KEYS[1])", 1, self._keys.effect(key))
        return read_reply(key, cast("list[bytes]", reply))

    async def held(self, limit: int) -> tuple[Entry, ...]:
        """What is open and can be read, the oldest first."""
        return (await self.listed(limit))[0]

    async def listed(self, limit: int) -> tuple[tuple[Entry, ...], tuple[EntryUnreadable, ...]]:
        """The oldest `limit` that are open: those that can be read, and those that cannot."""
        names = (self._keys.effects_since, self._keys.effect(""))
        return _parted(await self._redis.eval(_NOW + _HELD, 2, *names, limit))

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
        script: str,
        entry: Entry,
        arguments: Sequence[str | bytes | int],
        token: LaneToken | None,
        *,
        is_rare: bool = False,
    ) -> Entry | Moved:
        names = [self._keys.effect(entry.key), self._keys.effects_open, self._keys.effects_since]
        given = [str(entry.state), entry.sequence, entry.key, *arguments]
        reply = await self._run(script, names, given, token, is_rare=is_rare)
        is_so, written = cast("tuple[bytes, list[bytes]]", reply)
        stands = read_reply(entry.key, written)
        return stands if is_so == b"1" and stands is not None else Moved(stands)

    async def _run(
        self,
        script: str,
        names: Sequence[str],
        arguments: Sequence[str | bytes | int],
        token: LaneToken | None,
        *,
        is_rare: bool = False,
    ) -> object:
        """Run one step, guarded by a lane's token if there is one, and wait until it is on the disks it must be on."""
        guard = WHOLE if token is None else GUARD + SOUND
        first = self._keys.effects_open if token is None else token.name
        value = "" if token is None else token.value
        async with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.eval(guard + _NOW + script, len(names) + 1, first, *names, value, *arguments)
            (reply,) = await self._durability.execute(pipeline, self._keys, is_rare=is_rare)
        return reply


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
