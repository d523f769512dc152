-- Puts a claim into its lines, or renews it if it lives.
-- KEYS   4 for each line of the claim, then 4 for each other line of what leaves
-- ARGV   1 the record of the claim behind its number: 6 hex digits, id, attributes, name
--        2 hold ms  3 grace ms  4 wait ms  5 longest line, 0: any  6 "1": only if it holds at once
--        7 lines of the claim
--        8 id that leaves first, or ""  9 remember it for ms
--        10 id whose place is taken, or ""  11 its number
--        12 number of the claim, 0: not known
-- Result an answer (see line.lua)
-- Redis runs a script alone, so all of this is one atomic step.
local t = redis.call('TIME')
-- The usual cases of a mutex that is held, without the machinery of line.lua, whose making
-- costs more than this: nobody is dead, nothing is watched, all stand in this line only.
if #KEYS == 4 and ARGV[7] == '1' and ARGV[8] == '' and ARGV[10] == '' and string.sub(ARGV[1], 23, 23) == '|' then
  local sub, call, fmt = string.sub, redis.call, string.format
  local s, id, ms = call('GET', KEYS[1]) or '', sub(ARGV[1], 7, 22), t[1] * 1000 + math.floor(t[2] / 1000)
  if sub(s, 1, 2) == '1a' and sub(s, 38, 38) == '|' and sub(s, 22, 37) ~= id then
    local rest = call('PTTL', KEYS[1]) - tonumber(sub(s, 16, 21), 16) * 1000
    if rest >= 0 and ARGV[6] == '1' then
      return { 3, 0, 0, 0, 0, 1, sub(s, 39), rest }
    end
    if rest >= 0 and call('EXISTS', KEYS[2], KEYS[3], KEYS[4]) == 0 then
      local keep, exp = math.max(tonumber(sub(s, 16, 21), 16), tonumber(sub(ARGV[1], 1, 6), 16)), ms + ARGV[4]
      local number = math.max(tonumber(sub(s, 3, 15), 16) + 1, t[1] * 1000000 + t[2])
      local hex, guard = fmt('%013x', number), fmt('%.0f', math.max(ms + rest, exp) + keep * 1250)
      call('SET', KEYS[1], '1l' .. hex .. fmt('%06x %s %.0f 2 0 %.0f |', keep, guard, exp, exp)
        .. sub(s, 3, 15) .. fmt('%011x', ms + rest) .. sub(s, 22), 'PXAT', guard)
      call('HSET', KEYS[4], id, hex .. fmt('%011x', exp) .. sub(ARGV[1], 23))
      call('RPUSH', KEYS[2], id)
      call('PEXPIREAT', KEYS[2], guard)
      call('PEXPIREAT', KEYS[4], guard)
      return { 2, number, exp - ms, rest + 1, 0, 1, sub(s, 39), rest }
    end
  end
  local guard, soon, n, cursor, low, at = string.match(s, '^1l%x+ (%d+) (%d+) (%d+) (%d+) (%d+) |()')
  local held = at and tonumber(sub(s, at + 13, at + 23), 16)
  local name = held and sub(s, at + 24, at + 39) ~= id and string.match(s, '^[^kK|]*|(.*)$', at + 40)
  n = tonumber(n)
  if name and held >= ms and tonumber(soon) >= ms then
    if ARGV[6] == '1' or ARGV[5] ~= '0' and n - 1 >= tonumber(ARGV[5]) then
      if call('HEXISTS', KEYS[4], id) == 0 then
        return { 3, 0, 0, 0, 0, n, name, held - ms }
      end
    else
      local keep, exp = sub(s, 16, 21), ms + ARGV[4]
      local number = math.max(tonumber(sub(s, 3, 15), 16) + 1, t[1] * 1000000 + t[2])
      local hex = fmt('%013x', number)
      if sub(ARGV[1], 1, 6) <= keep and exp + tonumber(keep, 16) * 1000 <= tonumber(guard)
        and call('HSETNX', KEYS[4], id, hex .. fmt('%011x', exp) .. sub(ARGV[1], 23)) == 1 then
        local look = held
        if n > 1 then
          local texts = call('HMGET', KEYS[4], unpack(call('LRANGE', KEYS[2], 0, math.min(n, 8) - 2)))
          for i = 1, #texts do
            look = math.max(look, tonumber(sub(texts[i], 14, 24), 16))
          end
        end
        call('RPUSH', KEYS[2], id)
        if n == 1 then -- the list and the hash are new
          call('PEXPIREAT', KEYS[2], guard)
          call('PEXPIREAT', KEYS[4], guard)
        end
        call('SET', KEYS[1], '1l' .. hex .. keep .. fmt(' %s %.0f %d %s %.0f |', guard, math.min(soon, exp), n + 1, cursor,
          math.min(low, exp)) .. sub(s, at), 'PXAT', guard)
        return { 2, number, exp - ms, look + 1 - ms, 0, n, name, held - ms }
      end
    end
  end
end
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
    return renew(own, cs, tonumber(ARGV[12]), 1, life)
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
finish(result)
return result
