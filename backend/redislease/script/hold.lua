-- Extends claims that stand alone in the line of one key, many at once.
-- KEYS   the record of each line
-- ARGV   1 hold ms, then for each line the id and, if known, the number in 13 hex digits
-- Result the places (from 1) of what it did not do: no such claim, or one that does not stand
--        alone; renew.lua does those. For the others, in pairs, the place and the life, where it is
--        not the hold asked for.
-- Redis runs a script alone, so each item is an atomic step.
local values = redis.call('MGET', unpack(KEYS))
local rest, longer, sub, call = {}, {}, string.sub, redis.call
local hold = tonumber(ARGV[1])
local known, keep, expire = '', 0, ''
for i = 1, #values do
  local s, want = values[i], ARGV[i + 1]
  local left = -1
  -- the id stands at 22 to 37, the number at 3 to 15
  if s and sub(s, 22, 37) == sub(want, 1, 16) and sub(s, 1, 2) == '1a' and (#want == 16 or sub(s, 3, 15) == sub(want, 17)) then
    local seconds = sub(s, 16, 21)
    if seconds ~= known then
      known, keep = seconds, tonumber(seconds, 16) * 1000
      expire = string.format('%.0f', hold + keep)
    end
    if keep >= hold * 2 or keep == 16777215000 then
      left = call('PTTL', KEYS[i]) - keep
      if left >= 0 and left < hold then
        call('PEXPIRE', KEYS[i], expire)
      end
    end
  end
  if left < 0 then
    rest[#rest + 1] = i
  elseif left > hold then
    longer[#longer + 1] = i
    longer[#longer + 1] = left
  end
end
return { rest, longer }
