-- Shows a part of a line. It changes nothing.
-- KEYS   4 for the line
-- ARGV   1 list claims with a greater number than this  2 how many at most
-- Result nothing where there is no line, else: how many wait, then for each claim its number, weight,
--        capacity, index, name, rest in ms, 1 fixed + 2 revoked + 4 holding, µs in line
-- Redis runs a script alone, so it shows one moment.
local t = redis.call('TIME')
--@line
local l = open(1)
if bad then
  return bad
end
if l.kind ~= 'a' and not l.n then
  return false
end
local after, shown = tonumber(ARGV[1]), {}
local function show(c)
  if c.exp >= now and c.n > after then
    shown[#shown + 1] = { fmt('%.0f', c.n), fmt('%.0f', c.w), fmt('%.0f', c.c), c.i, c.name, fmt('%.0f', c.exp - now),
      (c.F and 1 or 0) + (c.R and 2 or 0) + (c.holding and 4 or 0), fmt('%.0f', math.max(micros - c.n, 0)) }
  end
end
if l.kind == 'a' then
  show(l.c)
  return { 0, 0, shown }
end
local waiting, last, ids, first = l.n - l.h, 0, nil, 0
if l.kind == 'z' then
  for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[3], '-inf', fmt('(%.0f', now), 'LIMIT', 0, 1000)) do
    if tonumber(call('ZSCORE', KEYS[2], id)) > l.g then
      waiting = waiting - 1
    end
  end
  ids = call('ZRANGEBYSCORE', KEYS[2], fmt('(%.0f', after), '+inf', 'LIMIT', 0, ARGV[2])
else
  if l.c then
    show(l.c)
  end
  if after > 0 then -- place of the first with a greater number
    local high = waiting
    while first < high do
      local middle = math.floor((first + high) / 2)
      if load(l, call('LINDEX', KEYS[2], middle)).n <= after then
        first = middle + 1
      else
        high = middle
      end
    end
  end
  ids = call('LRANGE', KEYS[2], first, first + ARGV[2] - 1)
  if l.soon < now then
    local some = call('LRANGE', KEYS[2], 0, 999)
    for _, s in ipairs(#some > 0 and call('HMGET', KEYS[4], unpack(some)) or {}) do
      waiting = waiting - (tonumber(sub(s, 14, 24), 16) < now and 1 or 0)
    end
  end
end
for i = 1, #ids do
  local c = get(l, ids[i])
  last = c.n
  show(c)
end
return { waiting, #ids == tonumber(ARGV[2]) and fmt('%.0f', last) or 0, shown }
