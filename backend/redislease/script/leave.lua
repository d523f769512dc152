-- Takes a claim out of its lines and hands over.
-- KEYS   4 for each line
-- ARGV   1 id  2 number, for the answer  3 remember the id for ms, 0: not
-- Result an answer (see line.lua)
-- Redis runs a script alone, so all of this is one atomic step.
local t = redis.call('TIME')
-- The usual hand-over, without the machinery of line.lua, whose making costs more than
-- this: the holder of a list leaves, nobody is dead, the next stands in this line only.
if #KEYS == 4 and ARGV[3] == '0' then
  local s, sub, call = redis.call('GET', KEYS[1]), string.sub, redis.call
  local guard, soon, n, cursor, low, at = string.match(s or '', '^1l%x+ (%d+) (%d+) (%d+) (%d+) (%d+) |()')
  local ms = t[1] * 1000 + math.floor(t[2] / 1000)
  if at and sub(s, at + 24, at + 39) == ARGV[1] and tonumber(sub(s, at + 13, at + 23), 16) >= ms then
    local number, next, w = tonumber(sub(s, at, at + 12), 16), nil, nil
    if n == '1' then
      call('SET', KEYS[1], '1f' .. sub(s, 3, 21) .. '|', 'PX', string.format('%.0f', tonumber(sub(s, 16, 21), 16) * 1000))
      return { 5, number, 0, 0, 0, 0, '', 0 }
    end
    if tonumber(soon) >= ms then
      next = call('LINDEX', KEYS[2], 0)
      w = call('HGET', KEYS[4], next)
    end
    if w and tonumber(sub(w, 14, 24), 16) >= ms and not string.find(w, '^%w-[kK]%d', 25) then
      call('LPOP', KEYS[2])
      call('HDEL', KEYS[4], next)
      call('SET', KEYS[1], sub(s, 1, 21) .. string.format(' %s %s %d %d %s |', guard, soon, n - 1, math.max(cursor - 1, 0), low)
        .. sub(w, 1, 24) .. next .. sub(w, 25), 'PXAT', guard)
      local heard = redis.pcall('PUBLISH', string.format('hasp:i:%02x%02x%02x%02x%02x%02x', string.byte(next, 1, 6)),
        'G' .. sub(w, 1, 13) .. next .. KEYS[1])
      return { 5, number, 0, 0, type(heard) == 'table' and 8 or 0, 0, '', 0 }
    end
  end
end
--@line
for k = 1, #KEYS, 4 do
  open(k)
  if bad then
    return bad
  end
end
settle()
local result = leave(lines, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
finish(result)
return result
