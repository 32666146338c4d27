"""Which Redis server the claims stand on, and what is known against them.

A server is told by its run id and its replication id: one changes with each start of the process, the other with each
promotion. What the namespace stands on is written down in the namespace itself:

`server`      hash    id: the server that all partitions were handed over to (streams/handover.py), or
                      `rebuilding:` and a nonce while a rebuild is at work; evicted: its count of evicted keys then;
                      seen_ms: its clock at the last look; claims, ledger: why these cannot be relied upon until they
                      are rebuilt, absent where they can
`canary:N`    string  lives for CANARY_LIFETIME_MS * 4^N after the last look: gone before that, Redis' clock has jumped

Promise: no script of a lane writes on a server that the namespace was not handed over to, nor after a key was evicted,
nor where Redis' clock stands more than MOST_JUMP_MS from where it was last seen; such a script changes nothing and
raises `LookAgain`. What marks cannot show (claims that were evicted or outlived early) is remembered until a rebuild.
Relies on: a look every minute at least (streams/watching.py), so that a clock that merely runs on is no jump.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, NewType, cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError
from ticketgate.store.clock import redis_now_ms
from ticketgate.store.conditions import ConditionFailed
from ticketgate.store.keys import Keys
from ticketgate.store.tokens import reply_of

ServerId = NewType("ServerId", str)
"""`run id/replication id`."""

Kind = Literal["claims", "ledger"]
"""What is rebuilt by a command of its own."""

# Clocks of servers that are looked after agree to a second. Claims that end ten minutes early still outlive what they
# must by far (settings.py); by more, nobody has reckoned with it.
MOST_JUMP_MS: Final = 600_000
CANARY_LIFETIME_MS: Final = 600_000
# The longest-lived outlives claims of four months.
CANARIES: Final = 8
# How long a hand-over may take before another process may try: hundreds of fences, each in a tenth of a second.
HANDOVER_LOCK_MS: Final = 60_000

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

REBUILDING: Final = "rebuilding:"
GAPS: Final = "gaps"
LOOK_AGAIN: Final = "LOOKAGAIN"

_HERE = """
local base = string.match(KEYS[1], '^ticketgate:[^:]+:')
local info = redis.call('INFO', 'server', 'replication', 'stats')
local id = string.match(info, 'run_id:(%x+)') .. '/' .. string.match(info, 'master_replid:(%x+)')
local evicted = string.match(info, 'evicted_keys:(%d+)')
local clock = redis.call('TIME')
local seconds, micros = tonumber(clock[1]), tonumber(clock[2])
local clock_ms = seconds * 1000 + math.floor(micros / 1000)
"""

SOUND = f"""
do
{_HERE}
local known = redis.call('HMGET', base .. 'server', 'id', 'evicted', 'seen_ms')
local why
if known[1] ~= id then why = 'this is not the server that the namespace stands on'
elseif known[2] ~= evicted then why = 'keys were evicted'
elseif math.abs(clock_ms - tonumber(known[3])) > {MOST_JUMP_MS}
  or redis.call('EXISTS', base .. 'canary:0') == 0 then why = 'its clock was not looked at lately' end
if why then return redis.error_reply('{LOOK_AGAIN} ' .. why) end
end
"""
"""How a script begins by which a batch's right to effects is written down. KEYS[1] is any key of the namespace."""

WHOLE = f"""
do
local base = string.match(KEYS[1], '^ticketgate:[^:]+:')
local known = redis.call('HMGET', base .. 'server', 'id', 'ledger')
if (known[1] and string.sub(known[1], 1, {len(REBUILDING)}) == '{REBUILDING}') or known[2] then
  return redis.error_reply('{LOOK_AGAIN} the ledger is not whole: it waits for `ticketgate ledger rebuild`')
end
end
"""
"""How a script begins that touches the ledger outside a lane, by a person or the reconciler."""

# KEYS[1] the server hash. ARGV[1] 1 if a clock that runs on saw Redis' jump forward. Returns: the server's id, the id
# that stands, its clock in ms, whether claims and ledger can be relied upon. Where the ids agree it looks at evictions
# and canaries, remembers what it finds, and sees the clock and the canaries anew.
_LOOK = f"""
{_HERE}
local known = redis.call('HMGET', KEYS[1], 'id', 'evicted', 'seen_ms')
if known[1] == id then
  local why
  if evicted ~= known[2] then
    -- Less is a statistic that somebody reset.
    if evicted == '0' then redis.call('HSET', KEYS[1], 'evicted', '0') else why = 'evicted' end
  end
  local seen = tonumber(known[3])
  for n = 0, {CANARIES - 1} do
    local lives = {CANARY_LIFETIME_MS} * 4 ^ n
    if redis.call('EXISTS', base .. 'canary:' .. n) == 0 and clock_ms < seen + lives - 1000 then why = why or 'clock'
    end
  end
  -- Had it run on, somebody would have seen it: who sees a jump alone was perhaps paused itself.
  if ARGV[1] == '1' and clock_ms - seen > {MOST_JUMP_MS} then why = why or 'clock' end
  if why then redis.call('HSET', KEYS[1], 'claims', why, 'ledger', why, 'evicted', evicted) end
  redis.call('HSET', KEYS[1], 'seen_ms', string.format('%.0f', clock_ms))
  for n = 0, {CANARIES - 1} do
    redis.call('SET', base .. 'canary:' .. n, '', 'PX', string.format('%.0f', {CANARY_LIFETIME_MS} * 4 ^ n))
  end
end
local flags = redis.call('HMGET', KEYS[1], 'claims', 'ledger')
return {{id, known[1] or '', string.format('%.0f', clock_ms), flags[1] or '', flags[2] or ''}}
"""

# KEYS[1] the server hash, KEYS[2] the lock. ARGV[1] the id that the caller means to write, ARGV[2] its nonce, ARGV[3]
# the lock's lifetime in ms. Returns whether the lock is the caller's.
_LOCK = f"""
{_HERE}
if id ~= ARGV[1] then return redis.error_reply('{LOOK_AGAIN} the server changed') end
if redis.call('SET', KEYS[2], ARGV[2], 'NX', 'PX', ARGV[3]) then return 1 end
return 0
"""

# KEYS[1] the server hash. ARGV[1] what stands for the server from now on, ARGV[2] the kind that is rebuilt, ARGV[3] the
# other one, of which an eviction that nobody saw yet is remembered. Returns the server's id.
_BEGIN_REBUILD = f"""
{_HERE}
local before = redis.call('HGET', KEYS[1], 'evicted')
if before and evicted ~= before and evicted ~= '0' then redis.call('HSET', KEYS[1], ARGV[3], 'evicted') end
redis.call('HSET', KEYS[1], 'id', ARGV[1], ARGV[2], 'rebuilding', 'evicted', evicted)
return id
"""

# KEYS and ARGV[1], ARGV[2] as for the lock. ARGV[3] the id that must stand until then ('' for none). ARGV[4] which kind
# was rebuilt, or ''. ARGV[5] 1 if the namespace has marks, so that what stood may have been evicted too. Returns 1 if
# the server was written down, 0 if something else stands there, 2 if keys were evicted while that kind was rebuilt.
_STAND_ON = f"""
{_HERE}
if id ~= ARGV[1] or (redis.call('HGET', KEYS[1], 'id') or '') ~= ARGV[3] then return 0 end
if ARGV[4] == '' and redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local before = redis.call('HMGET', KEYS[1], 'id', 'evicted')
if ARGV[4] ~= '' and evicted ~= redis.call('HGET', KEYS[1], 'evicted') then return 2 end
-- Another server's evictions cannot be told from before and since; a namespace that is new has lost nothing by them.
local is_other = before[1] and string.match(before[1], '^[^/]*') ~= string.match(id, '^[^/]*')
if ARGV[4] == '' and before[1] and ((is_other and evicted ~= '0')
    or (not is_other and evicted ~= before[2] and evicted ~= '0')) then
  redis.call('HSET', KEYS[1], 'claims', 'evicted', 'ledger', 'evicted')
end
if ARGV[4] == '' and not before[1] and ARGV[5] == '1' and evicted ~= '0' then
  redis.call('HSET', KEYS[1], 'claims', 'evicted', 'ledger', 'evicted')
end
if ARGV[4] ~= '' then redis.call('HDEL', KEYS[1], ARGV[4]) end
redis.call('HSET', KEYS[1], 'id', id, 'evicted', evicted, 'seen_ms', string.format('%.0f', clock_ms))
for n = 0, {CANARIES - 1} do
  redis.call('SET', base .. 'canary:' .. n, '', 'PX', string.format('%.0f', {CANARY_LIFETIME_MS} * 4 ^ n))
end
if redis.call('GET', KEYS[2]) == ARGV[2] then redis.call('DEL', KEYS[2]) end
return 1
"""

# KEYS[1] the lock; ARGV[1] the caller's nonce.
_UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0"


class LookAgain(Exception):
    """Redis is not where it was left: another server, evicted keys, a clock that jumped, or a rebuild. Nothing was
    written; the lane reopens, and what opens it looks."""


class Mistimed(ConditionFailed):
    """Redis' clock and this machine's are far apart, and lifetimes count by the first."""

    def __init__(self, ahead_ms: int) -> None:
        where = "ahead of" if ahead_ms > 0 else "behind"
        super().__init__(
            f"Redis' clock is {abs(ahead_ms) / 60_000:,.0f} minutes {where} this machine's",
            "set right whichever is wrong (NTP); if it was Redis', claims may have ended early, and lanes wait for"
            " `ticketgate claims rebuild`",
        )
        self.ahead_ms = ahead_ms


@dataclass(frozen=True, slots=True)
class Look:
    """A server as it was seen. known: the one that the namespace stands on, `rebuilding:` and a nonce, or None.
    flaws: why claims or ledger cannot be relied upon, one word each."""

    id: ServerId
    known: str | None
    clock_ms: int
    flaws: Mapping[Kind, str]

    @property
    def is_rebuilding(self) -> bool:
        """Whether a rebuild is at work, or died."""
        return self.known is not None and self.known.startswith(REBUILDING)


class Clocks:
    """Redis' clock beside one of this machine's that cannot be set, and that goes on while the machine sleeps."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    def has_jumped(self, clock_ms: int) -> bool:
        """Whether Redis' clock jumped forward since the last time."""
        steady_ms = round(time.clock_gettime(_STEADY) * 1000)
        last, self._last = self._last, (clock_ms, steady_ms)
        return last is not None and (clock_ms - last[0]) - (steady_ms - last[1]) > MOST_JUMP_MS


async def require_right_clock(redis: Redis) -> int:
    """Redis' clock in ms, if it is this machine's too. Raises `Mistimed` and redis-py's errors."""
    clock_ms = await redis_now_ms(redis)
    _require_right(clock_ms)
    return clock_ms


def _require_right(clock_ms: int) -> None:
    ahead_ms = clock_ms - round(time.time() * 1000)
    if abs(ahead_ms) > MOST_JUMP_MS:
        raise Mistimed(ahead_ms)


async def look(redis: Redis, keys: Keys, *, clocks: Clocks) -> Look:
    """See which server answers and what is known of it. Raises `Mistimed` and redis-py's errors.

    A jump that was seen is written down even where the clock is wrong still."""
    clock_ms = await redis_now_ms(redis)
    if clocks.has_jumped(clock_ms):
        await _run_look(redis, keys, has_jumped=True)
    _require_right(clock_ms)
    return await _run_look(redis, keys, has_jumped=False)


async def _run_look(redis: Redis, keys: Keys, *, has_jumped: bool) -> Look:
    reply = await redis.eval(_LOOK, 1, keys.server, int(has_jumped))
    found = [each.decode() for each in cast("list[bytes]", reply)]
    flaws: dict[Kind, str] = {}
    if found[3]:
        flaws["claims"] = found[3]
    if found[4]:
        flaws["ledger"] = found[4]
    return Look(ServerId(found[0]), found[1] or None, int(found[2]), flaws)


async def lock(redis: Redis, keys: Keys, server: ServerId, nonce: str) -> bool:
    """Whether the hand-over to `server` is this caller's now, for HANDOVER_LOCK_MS. Raises `LookAgain`."""
    with look_again():
        return bool(await redis.eval(_LOCK, 2, keys.server, keys.handover, server, nonce, HANDOVER_LOCK_MS))


async def unlock(redis: Redis, keys: Keys, nonce: str) -> None:
    """Let another one try."""
    await redis.eval(_UNLOCK, 1, keys.handover, nonce)


async def stand_on(redis: Redis, keys: Keys, look: Look, nonce: str, *, has_marks: bool = False) -> bool:
    """Write down that the namespace stands on this server. has_marks: it is not new. False, and nothing written, if the
    server, or what stood there, is no longer what was looked at, or the lock is no longer the caller's."""
    return await _stand_on(redis, keys, look, nonce, has_marks=has_marks) == 1


async def begin_rebuild(redis: Redis, keys: Keys, kind: Kind, nonce: str) -> Look:
    """Close all lanes of the namespace to this Redis, until `end_rebuild`, to which what this returns is given."""
    known = f"{REBUILDING}{nonce}"
    other = "ledger" if kind == "claims" else "claims"
    server = cast("bytes", await redis.eval(_BEGIN_REBUILD, 1, keys.server, known, kind, other))
    return Look(ServerId(server.decode()), known, 0, {})


async def note_gaps(redis: Redis, keys: Keys, kind: Kind) -> None:
    """Remember that a rebuild ended without having restored all, for lanes to tell."""
    await redis.hset(keys.server, kind, GAPS)


async def end_rebuild(redis: Redis, keys: Keys, look: Look, kind: Kind) -> None:
    """Let lanes open again. Raises `ConditionFailed` where what was restored may be gone again, and lanes stay
    closed."""
    written = await _stand_on(redis, keys, look, "", rebuilt=kind)
    if written == 2:
        raise ConditionFailed(
            "Redis evicted keys while they were restored",
            "set its maxmemory-policy to noeviction, and run the rebuild again",
        )
    if written == 0:
        raise ConditionFailed(
            "Redis was restarted or replaced during the rebuild, or another rebuild began", "run it again"
        )


async def _stand_on(
    redis: Redis, keys: Keys, look: Look, nonce: str, *, rebuilt: str = "", has_marks: bool = False
) -> int:
    arguments = (look.id, nonce, look.known or "", rebuilt, int(has_marks))
    return int(await redis.eval(_STAND_ON, 2, keys.server, keys.handover, *arguments))


def server_id(info: Mapping[str, object]) -> ServerId:
    """The id in INFO's sections server and replication."""
    return ServerId(f"{info['run_id']}/{info['master_replid']}")


@contextmanager
def look_again() -> Iterator[None]:
    """Translate what SOUND and WHOLE reply into `LookAgain`."""
    try:
        yield
    except ResponseError as err:
        if (said := reply_of(err)).startswith(LOOK_AGAIN):
            raise LookAgain(said.removeprefix(LOOK_AGAIN).strip()) from err
        raise
