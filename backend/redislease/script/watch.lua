-- Asks the steps of a line to tell what they change in it.
-- KEYS   4 for the line
-- ARGV   1 for how many ms
-- Result nothing
-- Redis runs a script alone, so all of this is one atomic step.
local t = redis.call('TIME')
--@line
local l = open(1)
if bad then
  return bad
end
if l.v < now + ARGV[1] / 2 then
  l.v, l.dirty = now + ARGV[1], true
end
finish()
return false
