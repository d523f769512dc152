-- Extends claims that stand alone in the line of one key, many at once.
-- KEYS   the record of each line
-- ARGV   1 hold ms  2 grace ms, then for each line the id and the number, if known
-- Result the places (from 1) of what it did not do: no such claim, or one that does not stand
--        alone; renew.lua does those. For the others, in pairs, the place and the life, where it is
--        not the hold asked for.
-- Redis runs a script alone, so each item is an atomic step.
local values = redis.call('MGET', unpack(KEYS))
local rest, longer, sub = {}, {}, string.sub
local hold, total = tonumber(ARGV[1]), ARGV[1] + ARGV[2]
for i = 1, #values do
  local s, want = values[i], ARGV[i + 2]
  local left = -1
  if s and ARGV[2] == '0' and sub(s, 1, 2) == '1a' and sub(s, 22, 37) == sub(want, 1, 16)
    and (#want == 16 or sub(s, 3, 15) == sub(want, 17)) then
    local keep = tonumber(sub(s, 16, 21), 16)
    if keep >= hold / 500 or keep == 16777215 then
      left = redis.call('PTTL', KEYS[i]) - keep * 1000
      if left >= 0 and left < hold then
        redis.call('PEXPIRE', KEYS[i], string.format('%.0f', total + keep * 1000))
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
