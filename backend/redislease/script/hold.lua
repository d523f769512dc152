-- Extends claims that stand alone in the line of one key, many at once.
-- KEYS   the record of each line
-- ARGV   1 hold ms  2 the seconds its last number outlives it, in 6 hex digits
--        then for each line what its record begins with: "1a", the number in 13 hex digits, ARGV[2], the id;
--        or the id alone where the number is not known
-- Result the places (from 1) of what it did not do: no such claim, or one that does not stand
--        alone; renew.lua does those. For the others, in pairs, the place and the life, where it is
--        not the hold asked for.
-- Redis runs a script alone, so each item is an atomic step.
local values = redis.call('MGET', unpack(KEYS))
local rest, longer, sub, call, fmt = {}, {}, string.sub, redis.call, string.format
local hold, usual = tonumber(ARGV[1]), tonumber(ARGV[2], 16) * 1000
local usually = fmt('%.0f', hold + usual)
for i = 1, #values do
  local s, want, left, keep, expire = values[i], ARGV[i + 2], -1, nil, nil
  if s and sub(s, 1, 37) == want then
    keep, expire = usual, usually
  elseif s and sub(s, 1, 2) == '1a' and sub(s, 22, 37) == sub(want, -16) and (#want == 16 or sub(s, 3, 15) == sub(want, 3, 15)) then
    keep = tonumber(sub(s, 16, 21), 16) * 1000
    expire = fmt('%.0f', hold + keep)
  end
  if keep and (keep >= hold * 2 or keep == 16777215000) then
    left = call('PTTL', KEYS[i]) - keep
    if left >= 0 and left < hold then
      call('PEXPIRE', KEYS[i], expire)
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
