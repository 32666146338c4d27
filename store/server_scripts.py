"""What scripts ask of the server that they run on, and the steps of a handover. servers.py says what they promise."""

from __future__ import annotations

from typing import Final

from ticketgate.store.script import Fragment, Script

# Clocks of servers that are looked after agree to a second. Claims that end ten minutes early still outlive what they
# must by far (settings.py); by more, nobody has reckoned with it.
MOST_JUMP_MS: Final = 600_000


CANARY_LIFETIME_MS: Final = 600_000


# The longest-lived outlives claims of four months.
CANARIES: Final = 8


REBUILDING: Final = "rebuilding:"


GAPS: Final = "gaps"


LOOK_AGAIN: Final = "LOOKAGAIN"


def _here(key: str) -> str:
    """What a script learns of its server; `key` names any key of the namespace."""
    return f"""\
local base = string.match({key}, '^ticketgate:[^:]+:')
local info = redis.call('INFO', 'server', 'replication', 'stats')
local id = string.match(info, 'run_id:(%x+)') .. '/' .. string.match(info, 'master_replid:(%x+)')
local evicted = string.match(info, 'evicted_keys:(%d+)')
local clock = redis.call('TIME')
local clock_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)"""


SOUND: Final = Fragment(
    f"""
do
{_here("token")}
local known = redis.call('HMGET', base .. 'server', 'id', 'evicted', 'seen_ms')
local why
if known[1] ~= id then why = 'this is not the server that the namespace stands on'
elseif known[2] ~= evicted then why = 'keys were evicted'
elseif math.abs(clock_ms - tonumber(known[3])) > {MOST_JUMP_MS}
  or redis.call('EXISTS', base .. 'canary:0') == 0 then why = 'its clock was not looked at lately' end
if why then return redis.error_reply('{LOOK_AGAIN} ' .. why) end
end
""",
    keys=["token"],
)
"""How a lane's script begins, after the token's guard, by which a batch's right to effects is written down."""


WHOLE: Final = Fragment(
    f"""
do
local base = string.match(due, '^ticketgate:[^:]+:')
local known = redis.call('HMGET', base .. 'server', 'id', 'ledger')
if (known[1] and string.sub(known[1], 1, {len(REBUILDING)}) == '{REBUILDING}') or known[2] then
  return redis.error_reply('{LOOK_AGAIN} the ledger is not whole: it waits for `ticketgate ledger rebuild`')
end
end
""",
    keys=["due"],
)
"""How a script begins that touches the ledger outside a lane, by a person or the reconciler. due: when to look at
effects again."""


_HERE: Final = Fragment(_here("server"), keys=["server"])


# has_jumped: 1 if a clock that runs on saw Redis' jump forward. Returns: the server's id, the id that stands, its clock
# in ms, whether claims and ledger can be relied upon. Where the ids agree it looks at evictions and canaries, remembers
# what it finds, and sees the clock and the canaries anew.
LOOK: Final = Script(
    "look",
    f"""
local known = redis.call('HMGET', server, 'id', 'evicted', 'seen_ms')
if known[1] == id then
  local why
  if evicted ~= known[2] then
    -- Less is a statistic that somebody reset.
    if evicted == '0' then redis.call('HSET', server, 'evicted', '0') else why = 'evicted' end
  end
  local seen = tonumber(known[3])
  for n = 0, {CANARIES - 1} do
    local lives = {CANARY_LIFETIME_MS} * 4 ^ n
    if redis.call('EXISTS', base .. 'canary:' .. n) == 0 and clock_ms < seen + lives - 1000 then why = why or 'clock'
    end
  end
  -- Had it run on, somebody would have seen it: who sees a jump alone was perhaps paused itself.
  if has_jumped == '1' and clock_ms - seen > {MOST_JUMP_MS} then why = why or 'clock' end
  if why then redis.call('HSET', server, 'claims', why, 'ledger', why, 'evicted', evicted) end
  redis.call('HSET', server, 'seen_ms', string.format('%.0f', clock_ms))
  for n = 0, {CANARIES - 1} do
    redis.call('SET', base .. 'canary:' .. n, '', 'PX', string.format('%.0f', {CANARY_LIFETIME_MS} * 4 ^ n))
  end
end
local flags = redis.call('HMGET', server, 'claims', 'ledger')
return {{id, known[1] or '', string.format('%.0f', clock_ms), flags[1] or '', flags[2] or ''}}
""",
    after=[_HERE],
    arguments=["has_jumped"],
)


# wanted_id: the server that the caller means to write down. Returns whether the lock is the caller's.
LOCK: Final = Script(
    "lock the handover",
    f"""
if id ~= wanted_id then return redis.error_reply('{LOOK_AGAIN} the server changed') end
if redis.call('SET', handover, nonce, 'NX', 'PX', lifetime_ms) then return 1 end
return 0
""",
    after=[_HERE],
    keys=["handover"],
    arguments=["wanted_id", "nonce", "lifetime_ms"],
)


# new_id: what stands for the server from now on. other_kind: the one that is not rebuilt, of which an eviction that
# nobody saw yet is remembered. Returns the server's id.
BEGIN_REBUILD: Final = Script(
    "begin a rebuild",
    """
local before = redis.call('HGET', server, 'evicted')
if before and evicted ~= before and evicted ~= '0' then redis.call('HSET', server, other_kind, 'evicted') end
redis.call('HSET', server, 'id', new_id, kind, 'rebuilding', 'evicted', evicted)
return id
""",
    after=[_HERE],
    arguments=["new_id", "kind", "other_kind"],
)


# wanted_id and nonce as for the lock. known_id: what must stand until then, '' for none. rebuilt_kind: '' for none.
# has_marks: 1 if the namespace has marks, so that what stood may have been evicted too. Returns 1 if the server was
# written down, 0 if something else stands there, 2 if keys were evicted while that kind was rebuilt.
STAND_ON: Final = Script(
    "stand on the server",
    f"""
if id ~= wanted_id or (redis.call('HGET', server, 'id') or '') ~= known_id then return 0 end
if rebuilt_kind == '' and redis.call('GET', handover) ~= nonce then return 0 end
local before = redis.call('HMGET', server, 'id', 'evicted')
if rebuilt_kind ~= '' and evicted ~= redis.call('HGET', server, 'evicted') then return 2 end
-- Another server's evictions cannot be told from before and since; a namespace that is new has lost nothing by them.
local is_other = before[1] and string.match(before[1], '^[^/]*') ~= string.match(id, '^[^/]*')
if rebuilt_kind == '' and before[1] and ((is_other and evicted ~= '0')
    or (not is_other and evicted ~= before[2] and evicted ~= '0')) then
  redis.call('HSET', server, 'claims', 'evicted', 'ledger', 'evicted')
end
if rebuilt_kind == '' and not before[1] and has_marks == '1' and evicted ~= '0' then
  redis.call('HSET', server, 'claims', 'evicted', 'ledger', 'evicted')
end
if rebuilt_kind ~= '' then redis.call('HDEL', server, rebuilt_kind) end
redis.call('HSET', server, 'id', id, 'evicted', evicted, 'seen_ms', string.format('%.0f', clock_ms))
for n = 0, {CANARIES - 1} do
  redis.call('SET', base .. 'canary:' .. n, '', 'PX', string.format('%.0f', {CANARY_LIFETIME_MS} * 4 ^ n))
end
if redis.call('GET', handover) == nonce then redis.call('DEL', handover) end
return 1
""",
    after=[_HERE],
    keys=["handover"],
    arguments=["wanted_id", "nonce", "known_id", "rebuilt_kind", "has_marks"],
)


UNLOCK: Final = Script(
    "unlock the handover",
    """
if redis.call('GET', handover) == nonce then redis.call('DEL', handover) end
return 0
""",
    keys=["handover"],
    arguments=["nonce"],
)
