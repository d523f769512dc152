-- Takes a claim out of its lines and hands over.
-- KEYS   4 for each line
-- ARGV   1 id  2 number, for the answer  3 remember the id for ms, 0: not
-- Result an answer (see line.lua)
-- Redis runs a script alone, so all of this is one atomic step.
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
