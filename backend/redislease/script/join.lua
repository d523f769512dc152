-- Puts a claim into its lines, or renews it if it lives.
-- KEYS   4 for each line of the claim, then 4 for each other line of what leaves
-- ARGV   1 the record of the claim behind its number: 6 hex digits, id, attributes, name
--        2 hold ms  3 grace ms  4 wait ms  5 longest line, 0: any  6 "1": only if it holds at once
--        7 lines of the claim
--        8 id that leaves first, or ""  9 remember it for ms
--        10 id whose place is taken, or ""  11 its number
-- Result an answer (see line.lua)
-- Redis runs a script alone, so all of this is one atomic step.
local t = redis.call('TIME')
--@line
local id, own = string.sub(ARGV[1], 7, 22), {}
local life = { hold = tonumber(ARGV[2]), grace = tonumber(ARGV[3]), wait = tonumber(ARGV[4]) }
for k = 1, #KEYS, 4 do
  local l = open(k)
  fresh(l)
  if bad then
    return bad
  end
  if #own < tonumber(ARGV[7]) then
    own[#own + 1] = l
  end
end
settle()
if ARGV[8] ~= '' then
  leave(lines, ARGV[8], 0, tonumber(ARGV[9]))
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
  local cs = collect(ARGV[10], own)
  if not cs or cs[1].n ~= tonumber(ARGV[11]) or not cs[1].holding then
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
    if l.c then
      l.c = c
      if l.n then
        place(l, c)
      end
    else
      redis.call('HDEL', KEYS[l.k + 3], ARGV[10])
      redis.call('ZREM', KEYS[l.k + 1], ARGV[10])
      redis.call('ZREM', KEYS[l.k + 2], ARGV[10])
      place(l, c)
    end
    cs[i] = c
  end
  return standing(own, cs)
end

local function come(new)
  local holds, full, n, longest = true, false, micros, tonumber(ARGV[5])
  for i = 1, #own do
    local l = own[i]
    holds = holds and admits(l, new.w, new.c)
    full = full or longest > 0 and l.n and l.n - l.h >= longest
    n = math.max(n, l.last + 1)
  end
  if not holds and (ARGV[6] == '1' or full) then
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
  local new = record(id, ARGV[1], 23)
  if ARGV[10] ~= '' then
    return takeover(new)
  end
  return come(new)
end

local result = join()
finish()
return result
