-- Takes a claim out of its lines and hands over.
-- KEYS   4 for each line
-- ARGV   1 id  2 number, for the answer  3 remember the id for ms, 0: not
-- Result the number where the claim stood alone, else an answer (see line.lua)
-- Redis runs a script alone, so all of this is one atomic step.
if #KEYS == 4 and ARGV[3] == '0' then
  local old = redis.call('GET', KEYS[1])
  if old and string.sub(old, 1, 2) == '1a' and string.sub(old, 22, 37) == ARGV[1] then
    local keep = tonumber(string.sub(old, 16, 21), 16) * 1000
    if redis.call('PTTL', KEYS[1]) >= keep then
      redis.call('SET', KEYS[1], '1f' .. string.sub(old, 3, 21) .. '|', 'PX', string.format('%.0f', keep))
      return tonumber(string.sub(old, 3, 15), 16)
    end
  end
end
local t = redis.call('TIME')
--@line
for k = 1, #KEYS, 4 do
  open(k)
  if bad then
    return bad
  end
end
settle()
local result = leave(lines, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
finish()
return result
