-- Puts claims of one key each into lines in which nobody stands, as take.lua does one.
-- KEYS   the record of each line
-- ARGV   for each line the milliseconds of its record, and what stands in it behind the number
-- Result for each line the number; or nothing where its record says anything else but a last number:
--        join.lua then; or the error of its key
-- Redis runs a script alone, so each item is an atomic step; an error of one stops no other.
local t, try, sub, out = redis.call('TIME'), redis.pcall, string.sub, {}
local n = t[1] * 1000000 + t[2]
local head = string.format('1a%013x', n)
for i = 1, #KEYS do
  local ms, rest = ARGV[2 * i - 1], ARGV[2 * i]
  local old = try('SET', KEYS[i], head .. rest, 'NX', 'GET', 'PX', ms) --@7
  --@6 local old = try('GET', KEYS[i])
  --@6 if not old then
  --@6   old = try('SET', KEYS[i], head .. rest, 'PX', ms)
  --@6   old = old.err and old
  --@6 end
  if not old then
    out[i] = n
  elseif old.err then
    out[i] = old
  elseif #old ~= 22 or sub(old, 1, 2) ~= '1f' then
    out[i] = false
  else
    local own, keep, usual = tonumber(sub(old, 3, 15), 16) + 1, sub(old, 16, 21), sub(rest, 1, 6)
    if keep > usual then -- the longest life of late counts
      ms = string.format('%.0f', ms + (tonumber(keep, 16) - tonumber(usual, 16)) * 1000)
      rest = keep .. sub(rest, 7)
    end
    own = math.max(own, n)
    local done = try('SET', KEYS[i], (own == n and head or string.format('1a%013x', own)) .. rest, 'PX', ms)
    out[i] = done.err and done or own
  end
end
return out
