-- Renews, fixes or takes out claims, one after the other.
-- KEYS   4 for each line of each claim
-- ARGV   for each claim: mode (1 extend, 2 fix, 3 drop), id, number or 0, hold ms, grace ms, wait ms,
--        how many lines, remember the id for ms (with drop)
-- Result an answer (see line.lua) for each claim, or an error where its key holds a foreign value
-- Redis runs a script alone, so each item is an atomic step; the caps count for all of them.
local t = redis.call('TIME')
--@line
local results, k = {}, 1
for a = 1, #ARGV, 8 do
  local ls, from = {}, #lines + 1
  for i = 1, tonumber(ARGV[a + 6]) do
    ls[i] = open(k)
    k = k + 4
  end
  if bad then
    results[#results + 1], bad = bad, nil
  else
    settle(from)
    local id, number, mode = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a])
    local life = { hold = tonumber(ARGV[a + 3]), grace = tonumber(ARGV[a + 4]), wait = tonumber(ARGV[a + 5]) }
    local cs = mode ~= 3 and collect(id, ls)
    if mode == 3 then
      results[#results + 1] = leave(ls, id, number, tonumber(ARGV[a + 7]))
    elseif cs then
      results[#results + 1] = renew(ls, cs, number, mode, life)
    else
      results[#results + 1] = gone(number, ls)
    end
  end
end
finish(results[#results])
return results
