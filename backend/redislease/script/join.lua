-- Puts a claim into its lines, or renews it if it lives.
-- KEYS   4 for each line of the claim, then 4 for each other line of what leaves
-- ARGV   1 milliseconds of a record that stands alone, 0: look before (several keys, leaving, taking over)
--        2 its kind, "a" or "A"   3 the rest of the record behind the number
--        4 id  5 hold ms  6 grace ms  7 wait ms  8 longest line, 0: any  9 "1": only if it holds at once
--        10 lines of the claim
--        11 id that leaves first, or ""  12 remember it for ms
--        13 id whose place is taken, or ""  14 its number
-- Result the number where the claim stands alone and holds, else an answer (see line.lua)
-- Redis runs a script alone, so all of this is one atomic step.
local t = redis.call('TIME')
if ARGV[1] ~= '0' then
  local n = t[1] * 1000000 + t[2]
  local old = redis.call('SET', KEYS[1], '1' .. ARGV[2] .. string.format('%013x', n) .. ARGV[3], 'NX', 'GET', 'PX', ARGV[1]) --@7
  --@6 local old = redis.call('GET', KEYS[1])
  if not old then
    --@6 redis.call('SET', KEYS[1], '1' .. ARGV[2] .. string.format('%013x', n) .. ARGV[3], 'PX', ARGV[1])
    return n
  end
  if #old == 22 and string.sub(old, 1, 2) == '1f' then
    local rest, ms = ARGV[3], ARGV[1]
    local keep = string.sub(old, 16, 21)
    n = math.max(n, tonumber(string.sub(old, 3, 15), 16) + 1)
    if keep > string.sub(rest, 1, 6) then
      ms = string.format('%.0f', ms + (tonumber(keep, 16) - tonumber(string.sub(rest, 1, 6), 16)) * 1000)
      rest = keep .. string.sub(rest, 7)
    end
    redis.call('SET', KEYS[1], '1' .. ARGV[2] .. string.format('%013x', n) .. rest, 'PX', ms)
    return n
  end
end
--@line
local id, own = ARGV[4], {}
local life = { hold = tonumber(ARGV[5]), grace = tonumber(ARGV[6]), wait = tonumber(ARGV[7]) }
for k = 1, #KEYS, 4 do
  local l = open(k)
  fresh(l)
  if bad then
    return bad
  end
  if #own < tonumber(ARGV[10]) then
    own[#own + 1] = l
  end
end
settle()
if ARGV[11] ~= '' then
  leave(lines, ARGV[11], 0, tonumber(ARGV[12]))
end

local function fill(c, n, i)
  local mine = { id = c.id, w = c.w, c = c.c, g = c.g, i = c.i, name = c.name, n = n, exp = c.exp, holding = c.holding }
  if #own > 1 then
    mine.several = true
    if i == 1 then
      local names = {}
      for j = 1, #own do
        names[j] = string.format('%d:', #KEYS[own[j].k]) .. KEYS[own[j].k]
      end
      mine.all = table.concat(names)
    else
      mine.first = KEYS[own[1].k]
    end
  end
  return mine
end

-- gives a holding claim to the new id
local function takeover(new)
  local cs = collect(ARGV[13], own)
  if not cs or cs[1].n ~= tonumber(ARGV[14]) or not cs[1].holding then
    return gone(0, own)
  end
  for i = 1, #own do
    if cs[i].R then
      return gone(0, own, cs[i])
    end
  end
  new.w, new.c, new.g, new.exp, new.holding = cs[1].w, cs[1].c, life.grace, now + life.hold + life.grace, true
  for i = 1, #own do
    local l, c = own[i], fill(new, cs[i].n, i)
    keep(l, keepfor(life.hold))
    l.changed, l.dirty = true, true
    if l.kind == 'a' then
      l.c = c
    else
      redis.call('HDEL', KEYS[l.k + 3], ARGV[13])
      redis.call('ZREM', KEYS[l.k + 1], ARGV[13])
      redis.call('ZREM', KEYS[l.k + 2], ARGV[13])
      place(l, c)
    end
    cs[i] = c
  end
  return standing(own, cs)
end

local function come(new)
  local holds, full, n, longest = true, false, micros, tonumber(ARGV[8])
  for i = 1, #own do
    local l = own[i]
    holds = holds and admits(l, new.w, new.c)
    full = full or longest > 0 and l.kind == 'z' and l.n - l.h >= longest
    n = math.max(n, l.last + 1)
  end
  if not holds and (ARGV[9] == '1' or full) then
    return refused(own, new.w, new.c)
  end
  new.holding = holds
  new.g = holds and life.grace or 0
  new.exp = now + (holds and life.hold + life.grace or life.wait)
  local cs = {}
  for i = 1, #own do
    local l = own[i]
    keep(l, keepfor(life.hold))
    cs[i] = fill(new, n, i)
    enter(l, cs[i])
    -- where it is the first to wait and fits, its client need not be told
    if #own > 1 and not holds and l.n == l.h + 1 and not l.dead and fits(l, new.w, new.c) then
      cs[i].T = '1'
      save(l, cs[i])
    end
  end
  return standing(own, cs)
end

local function join()
  local cs = collect(id, own)
  if cs then
    return renew(own, cs, 0, 1, life)
  end
  for i = 1, #own do
    local known = remembered(own[i], id)
    if known and known[2] >= now then
      return gone(0, own)
    end
  end
  local new = record(id, ARGV[3], 23)
  if ARGV[13] ~= '' then
    return takeover(new)
  end
  return come(new)
end

local result = join()
finish()
return result
