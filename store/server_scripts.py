"""What scripts ask of the server that they run on, and the steps of a handover. servers.py says what they promise."""

from __future__ import annotations

from typing import Final

# Clocks of servers that are looked after agree to a second. Claims that end ten minutes early still outlive what they
# must by far (settings.py); by more, nobody has reckoned with it.
MOST_JUMP_MS: Final = 600_000


CANARY_LIFETIME_MS: Final = 600_000


# The longest-lived outlives claims of four months.
CANARIES: Final = 8


REBUILDING: Final = "rebuilding:"


GAPS: Final = "gaps"


LOOK_AGAIN: Final = "LOOKAGAIN"


HERE = """
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
{HERE}
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
LOOK = f"""
{HERE}
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
LOCK = f"""
{HERE}
if id ~= ARGV[1] then return redis.error_reply('{LOOK_AGAIN} the server changed') end
if redis.call('SET', KEYS[2], ARGV[2], 'NX', 'PX', ARGV[3]) then return 1 end
return 0
"""


# KEYS[1] the server hash. ARGV[1] what stands for the server from now on, ARGV[2] the kind that is rebuilt, ARGV[3] the
# other one, of which an eviction that nobody saw yet is remembered. Returns the server's id.
BEGIN_REBUILD = f"""
{HERE}
local before = redis.call('HGET', KEYS[1], 'evicted')
if before and evicted ~= before and evicted ~= '0' then redis.call('HSET', KEYS[1], ARGV[3], 'evicted') end
redis.call('HSET', KEYS[1], 'id', ARGV[1], ARGV[2], 'rebuilding', 'evicted', evicted)
return id
"""


# KEYS and ARGV[1], ARGV[2] as for the lock. ARGV[3] the id that must stand until then ('' for none). ARGV[4] which kind
# was rebuilt, or ''. ARGV[5] 1 if the namespace has marks, so that what stood may have been evicted too. Returns 1 if
# the server was written down, 0 if something else stands there, 2 if keys were evicted while that kind was rebuilt.
STAND_ON = f"""
{HERE}
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
UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0"
