"""The ledger's steps as scripts, each whole or not at all. ledger.py says what they promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ticketgate.store.lane_state.marks import RAISE_MARK
from ticketgate.store.script import Fragment, Script
from ticketgate.store.server_scripts import SOUND, WHOLE
from ticketgate.store.tokens import GUARD

NOW: Final = Fragment(
    """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
"""
)
"""Redis' time in ms."""


# An entry as the scripts return it: the time, then the hash, flat.
_ENTRY = Fragment(
    """
local function entry(name)
  local found = redis.call('HGETALL', name)
  table.insert(found, 1, string.format('%.0f', now))
  return found
end
"""
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step, by a lane under its token and by nobody's lane: a person or the reconciler. They read the same names,
    but for the token's."""

    in_lane: Script
    outside: Script


# What was rejected before anything was sent leaves its key to another order (`entries.is_free`). What is prepared lives
# for as long as its record can be read, from when a lane last took it up.
#
# A confirmation is bound to the effect that takes it first, until it is known that nothing came of that one
# (`entries.is_undone`), or that one has taken another. If the entry of who took it is gone, nothing is known: it stays
# used up.
_BIND = """
local function confirm(effect, key, digests)
  local by = nil
  for digest in string.gmatch(digests, '[^,]+') do
    local used = confirmations_prefix .. digest
    local holder = redis.call('GET', used)
    local of = holder and holder ~= key
      and redis.call('HMGET', effects_prefix .. holder, 'undone', 'confirmation', 'state')
    if not of or of[1] == '1' or (of[3] and of[2] ~= digest) then
      redis.call('SET', used, key, 'PX', lifetime_ms)
      redis.call('HSET', effect, 'confirmation', digest)
      redis.call('HDEL', effect, 'spent')
      return
    end
    by = by or holder
  end
  if by then redis.call('HSET', effect, 'spent', by) end
end
local found = {}
for i, effect in ipairs(effects) do
  local key, content, order, digests = orders[4 * i - 3], orders[4 * i - 2], orders[4 * i - 1], orders[4 * i]
  local stands = redis.call('HMGET', effect, 'state', 'sends', 'order', 'content', 'confirmation')
  local is_free = stands[1] == 'rejected' and stands[2] == '0' and stands[3] ~= order
  if not stands[1] or is_free then
    redis.call('HSET', effect, 'content', content, 'order', order,
      'state', 'prepared', 'sends', 0, 'at', now, 'told', 1)
    redis.call('HINCRBY', effect, 'sequence', 1)
    redis.call('HDEL', effect, 'known', 'restored', 'confirmation', 'spent', 'undone')
    stands = {'prepared', '0', order, content, false}
  end
  if stands[1] == 'prepared' then
    redis.call('PEXPIRE', effect, lifetime_ms)
    if not stands[5] and stands[4] == content then confirm(effect, key, digests) end
  end
  found[i] = entry(effect)
end
"""
_BIND_READS = ("lifetime_ms", "effects_prefix", "confirmations_prefix")

# orders: each effect's key, content, order and the digests of its confirmations, with commas between, by turns.
# effects_prefix, confirmations_prefix: what their names begin with. Returns the entries as they stand. In a lane the
# claimed mark is raised, last of all.
PREPARE: Final = Step(
    in_lane=Script(
        "prepare effects",
        f"{_BIND}{RAISE_MARK.text}return found",
        after=[GUARD, SOUND, NOW, _ENTRY],
        keys=RAISE_MARK.keys,
        more_keys="effects",
        arguments=[*_BIND_READS, *RAISE_MARK.arguments],
        more_arguments="orders",
    ),
    outside=Script(
        "prepare effects outside a lane",
        f"{_BIND}return found",
        after=[WHOLE, NOW, _ENTRY],
        more_keys="effects",
        arguments=_BIND_READS,
        more_arguments="orders",
    ),
)


# A step is taken only from the state and the sequence that its caller saw. It returns whether it was so, and the entry.
_COMPARE = Fragment(
    """
local stands = redis.call('HMGET', effect, 'state', 'sequence')
if stands[1] ~= seen_state or stands[2] ~= seen_sequence then return {'0', entry(effect)} end
""",
    keys=["effect"],
    arguments=["seen_state", "seen_sequence"],
)


def _step(name: str, text: str, *, keys: Sequence[str], arguments: Sequence[str]) -> Step:
    text = f"{text}return {{'1', entry(effect)}}"
    rest = [NOW, _ENTRY, _COMPARE]
    return Step(
        in_lane=Script(name, text, after=[GUARD, SOUND, *rest], keys=keys, arguments=arguments),
        outside=Script(f"{name} outside a lane", text, after=[WHOLE, *rest], keys=keys, arguments=arguments),
    )


# due: what to look at again, by the ms when. open: what is open, by the ms since when. effect_key: the effect's name in
# these two. known_json: the field of that name. look_in_ms: until it is looked at.
BEGIN_SEND: Final = _step(
    "begin to send an effect",
    """
redis.call('HSET', effect, 'state', 'unknown', 'known', known_json, 'at', now, 'sent', now, 'reads', 0, 'told', 1)
redis.call('HINCRBY', effect, 'sequence', 1)
redis.call('HINCRBY', effect, 'sends', 1)
redis.call('PERSIST', effect)
redis.call('ZADD', due, now + tonumber(look_in_ms), effect_key)
redis.call('ZADD', open, 'NX', now, effect_key)
""",
    keys=["due", "open"],
    arguments=["effect_key", "known_json", "look_in_ms"],
)


# is_open, is_told, is_undone: of the new state, 0 or 1. lifetime_ms: of what is neither to be looked at nor to be told.
SETTLE: Final = _step(
    "settle an effect",
    """
redis.call('HSET', effect, 'state', new_state, 'known', known_json, 'at', now, 'told', is_told, 'undone', is_undone)
redis.call('HINCRBY', effect, 'sequence', 1)
if is_open == '1' then
  redis.call('ZADD', open, 'NX', now, effect_key)
else
  redis.call('ZREM', open, effect_key)
end
if is_open == '1' or is_told == '0' then
  redis.call('ZADD', due, now + tonumber(look_in_ms), effect_key)
  redis.call('PERSIST', effect)
else
  redis.call('ZREM', due, effect_key)
  redis.call('PEXPIRE', effect, lifetime_ms)
end
""",
    keys=["due", "open"],
    arguments=[
        *("effect_key", "known_json", "look_in_ms", "new_state"),
        *("is_open", "is_told", "is_undone", "lifetime_ms"),
    ],
)


TELL: Final = _step(
    "tell of an effect",
    """
redis.call('HSET', effect, 'told', 1)
if is_open == '0' then
  redis.call('ZREM', due, effect_key)
  redis.call('PEXPIRE', effect, lifetime_ms)
end
""",
    keys=["due"],
    arguments=["effect_key", "is_open", "lifetime_ms"],
)


HOLD: Final = _step(
    "hold an effect",
    """
redis.call('ZREM', due, effect_key)
""",
    keys=["due"],
    arguments=["effect_key"],
)


# prefix: what an effect's name begins with. Returns keys and entries by turns.
TAKE_DUE: Final = Script(
    "take effects that are due",
    """
local found = {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, most)) do
  local name = prefix .. key
  if redis.call('EXISTS', name) == 0 then
    redis.call('ZREM', due, key)
    redis.call('ZREM', open, key)
  else
    local reads = redis.call('HINCRBY', name, 'reads', 1)
    local pause = math.min(tonumber(longest_pause_ms), tonumber(first_pause_ms) * 2 ^ math.min(reads - 1, 30))
    redis.call('ZADD', due, now + pause, key)
    found[#found + 1] = key
    found[#found + 1] = entry(name)
  end
end
return found
""",
    after=[NOW, _ENTRY],
    keys=["due", "open"],
    arguments=["prefix", "most", "first_pause_ms", "longest_pause_ms"],
)


# As above.
HELD: Final = Script(
    "list open effects",
    """
local found = {}
for _, key in ipairs(redis.call('ZRANGE', open, 0, tonumber(most) - 1)) do
  found[#found + 1] = key
  found[#found + 1] = entry(prefix .. key)
end
return found
""",
    after=[NOW, _ENTRY],
    keys=["open"],
    arguments=["prefix", "most"],
)


READ: Final = Script("read an effect", "return entry(effect)", after=[NOW, _ENTRY], keys=["effect"])
