-- Takes out claims of one key each that stand alone, as give.lua does one.
-- KEYS   the record of each line
-- ARGV   the id of each
-- Result for each line the number; or nothing where no such claim stands alone: leave.lua then
-- Redis runs a script alone, so each item is an atomic step; an error of one stops no other.
local t, call, sub, out = redis.call('TIME'), redis.call, string.sub, {}
local micros, olds = t[1] * 1000000 + t[2], call('MGET', unpack(KEYS))
-- A number is the time of the join, and no life with "1a" is shorter than 0.1 s.
local young, known, keep, ms = string.format('%013x', micros - 100000), nil, nil, nil
local now = string.format('%013x', micros)
for i = 1, #KEYS do
  local old = olds[i]
  out[i] = false
  if old and sub(old, 22, 37) == ARGV[i] and sub(old, 1, 2) == '1a' then
    local number, seconds = sub(old, 3, 15), sub(old, 16, 21)
    if seconds ~= known then
      known, keep = seconds, tonumber(seconds, 16) * 1000
      ms = string.format('%.0f', keep)
    end
    if number > young and number <= now or call('PTTL', KEYS[i]) >= keep then
      -- A Redis 6.2 out of memory takes no SET, but lets the claim be dead at once.
      if redis.pcall('SET', KEYS[i], '1f' .. sub(old, 3, 21) .. '|', 'PX', ms).err then
        call('PEXPIRE', KEYS[i], keep - 1)
      end
      out[i] = tonumber(number, 16)
    end
  end
end
return out
