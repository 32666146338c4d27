"""The ledger's steps as scripts, each whole or not at all. ledger.py says what they promise."""

from __future__ import annotations

# Redis' time in ms; and an entry as the scripts return it: the time, then the hash, flat.
NOW = """
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
PREPARE = """
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
COMPARE = """
local stands = redis.call('HMGET', KEYS[2], 'state', 'sequence')
if stands[1] ~= ARGV[2] or stands[2] ~= ARGV[3] then return {'0', entry(KEYS[2])} end
"""


BEGIN_SEND = (
    COMPARE
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
SETTLE = (
    COMPARE
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
TELL = (
    COMPARE
    + """
redis.call('HSET', KEYS[2], 'told', 1)
if ARGV[5] == '0' then
  redis.call('ZREM', KEYS[3], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end
return {'1', entry(KEYS[2])}
"""
)


HOLD = (
    COMPARE
    + """
redis.call('ZREM', KEYS[3], ARGV[4])
return {'1', entry(KEYS[2])}
"""
)


# KEYS[1] what to look at again, KEYS[2] what is open. ARGV[1] what an effect's name begins with, ARGV[2] how many at
# most, ARGV[3] and ARGV[4] the first and the longest pause in ms. Returns keys and entries by turns.
TAKE_DUE = """
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
HELD = """
local found = {}
for _, key in ipairs(redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[1]) - 1)) do
  found[#found + 1] = key
  found[#found + 1] = entry(KEYS[2] .. key)
end
return found
"""
