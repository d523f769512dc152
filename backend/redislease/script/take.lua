-- Puts a claim of one key into a line in which nobody stands.
-- KEYS   the record of the line
-- ARGV   1 milliseconds of the record  2 what stands in it behind the number
--        3 what stands before, if it is not the usual
-- Result the number, or nothing where the record says anything else but a last number: join.lua then
-- Redis runs a script alone, so all of this is one atomic step.
local t, before = redis.call('TIME'), ARGV[3] or '1a'
local n = t[1] * 1000000 + t[2]
local old = redis.call('SET', KEYS[1], before .. string.format('%013x', n) .. ARGV[2], 'NX', 'GET', 'PX', ARGV[1]) --@7
--@6 local old = redis.call('GET', KEYS[1])
if not old then
  --@6 redis.call('SET', KEYS[1], before .. string.format('%013x', n) .. ARGV[2], 'PX', ARGV[1])
  return n
end
if #old ~= 22 or string.sub(old, 1, 2) ~= '1f' then
  return false
end
local rest, ms, keep = ARGV[2], ARGV[1], string.sub(old, 16, 21)
n = math.max(n, tonumber(string.sub(old, 3, 15), 16) + 1)
if keep > string.sub(rest, 1, 6) then -- the longest life of late counts
  ms = string.format('%.0f', ms + (tonumber(keep, 16) - tonumber(string.sub(rest, 1, 6), 16)) * 1000)
  rest = keep .. string.sub(rest, 7)
end
redis.call('SET', KEYS[1], before .. string.format('%013x', n) .. rest, 'PX', ms)
return n
