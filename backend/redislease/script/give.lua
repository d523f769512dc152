-- Takes out a claim of one key that stands alone.
-- KEYS   the record of the line
-- ARGV   1 id
-- Result the number, or nothing where no such claim stands alone: leave.lua then
-- Redis runs a script alone, so all of this is one atomic step.
local old = redis.call('GET', KEYS[1])
if not old or string.sub(old, 22, 37) ~= ARGV[1] or string.sub(old, 1, 2) ~= '1a' then
  return false
end
local keep = tonumber(string.sub(old, 16, 21), 16) * 1000
if redis.call('PTTL', KEYS[1]) < keep then
  return false
end
-- A Redis 6.2 out of memory takes no SET, but lets the claim be dead at once.
if redis.pcall('SET', KEYS[1], '1f' .. string.sub(old, 3, 21) .. '|', 'PX', keep).err then
  redis.call('PEXPIRE', KEYS[1], keep - 1)
end
return tonumber(string.sub(old, 3, 15), 16)
