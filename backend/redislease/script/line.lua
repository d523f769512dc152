-- What all verbs share: lines in memory, from opening them to writing them back.
-- It is put where a verb asks for it; the verb has read the clock into t.
--
-- A verb opens lines, sweeps the dead from them and hands over ("settle"), does its
-- own work, and ends with finish(), which writes what has changed and sends the
-- signals last. Redis runs a script alone, so all of that is one atomic step. A
-- verb that finds "bad" set has written nothing and answers it.
--
-- A line has four keys: KEYS[k] its record, KEYS[k+1] the order, KEYS[k+2] the
-- expiries, KEYS[k+3] the claims. By what its record says it is
--   n  nothing        f  empty, only the last number and remembered ids
--   a  one claim that holds, in the record
--   l  a crowd of claims of capacity 1: the holder in the record, the ids of those that
--      wait in a list, their claims (number, expiry, attributes, name) in a hash
--   z  a crowd of any claims: the number of the last holder in the record, sorted sets
--      id -> number and id -> expiry, the claims (number, attributes, name) in a hash
-- docs/stores.md describes them.
local call, sub, fmt, find, match = redis.call, string.sub, string.format, string.find, string.match
local now, micros = t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
local removals, grants = 64, 32
local HUGE, LOOK = 4503599627370496, 100
local lines, byname, news, bad = {}, {}, {}, nil

-- attributes: a letter and a decimal number each
local function attributes(s)
  local a = {}
  for letter, value in string.gmatch(s, '(%a)(%d*)') do
    a[letter] = value
  end
  return a
end

-- the claim whose attributes begin at s[from]
local function record(id, s, from)
  local bar = find(s, '|', from, true)
  local c = { id = id, w = 1, c = 1, g = 0, i = 0, name = sub(s, bar + 1) }
  if bar > from then
    local a = attributes(sub(s, from, bar - 1))
    c.w, c.c, c.g, c.i = tonumber(a.w or 1), tonumber(a.c or 1), tonumber(a.g or 0), tonumber(a.i or 0)
    c.F, c.R, c.T = a.F, a.R, a.T
    local tail = tonumber(a.m or 0) * 27
    if tail > 0 then
      c.name = sub(c.name, 1, -tail - 1)
    end
    local len = tonumber(a.K or a.k or 0)
    if len > 0 then
      c.several = true
      c.all, c.first = a.K and sub(c.name, -len), a.k and sub(c.name, -len)
      c.name = sub(c.name, 1, -len - 1)
    end
  end
  return c
end

-- the text of a claim: its attributes (and those of the line, where it stands in the
-- line's record), its name, the keys it stands in
local function text(c, extra)
  local keys = c.all or c.first or ''
  return (c.w ~= 1 and fmt('w%.0f', c.w) or '') .. (c.c ~= 1 and fmt('c%.0f', c.c) or '')
    .. (c.g ~= 0 and fmt('g%.0f', c.g) or '') .. (c.i ~= 0 and fmt('i%d', c.i) or '')
    .. (c.F and 'F' or '') .. (c.R and 'R' or '') .. (c.T and 'T' or '')
    .. (keys ~= '' and fmt(c.all and 'K%d' or 'k%d', #keys) or '')
    .. (extra or '') .. '|' .. c.name .. keys
end

-- how many seconds the last number outlives the line, for a claim of that life
local function keepfor(hold)
  return math.min(math.max(math.ceil(hold / 500), 10), 16777215)
end

local function open(k)
  local l = byname[KEYS[k]]
  if l then
    bad = bad or l.bad
    return l
  end
  l = { k = k, kind = 'n', last = 0, keep = 0, tail = '', u = 0, v = 0 }
  byname[KEYS[k]] = l
  lines[#lines + 1] = l
  local s = redis.pcall('GET', KEYS[k])
  if not s then
    return l
  end
  if type(s) == 'table' then -- an error, WRONGTYPE as a rule
    l.bad = s
    bad = bad or s
    return l
  end
  local kind, last, keep = match(s, '^1([faAlz])(%x%x%x%x%x%x%x%x%x%x%x%x%x)(%x%x%x%x%x%x)')
  if not kind then
    if match(s, '^[2-9]%a%x%x%x%x%x%x%x%x') then
      l.bad = redis.error_reply('HASPNEWER layout version ' .. sub(s, 1, 1) .. ', this client knows 1')
    else
      l.bad = redis.error_reply('HASPFOREIGN not a value of hasp')
    end
    bad = bad or l.bad
    return l
  end
  l.kind, l.last, l.keep = kind, tonumber(last, 16), tonumber(keep, 16)
  local a, bar
  if kind == 'z' then
    local g, guard, soon, used, cap, capn, h, n, more, at =
      match(s, '^ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%w*)|()', 22)
    l.g, l.guard, l.soon, l.used = tonumber(g), tonumber(guard), tonumber(soon), tonumber(used)
    l.cap, l.capn, l.h, l.n = tonumber(cap), tonumber(capn), tonumber(h), tonumber(n)
    if more ~= '' then
      a = attributes(more)
    end
    bar = at
  elseif kind == 'l' then
    local guard, soon, n, cursor, low, more, at = match(s, '^ (%d+) (%d+) (%d+) (%d+) (%d+) (%w*)|()', 22)
    l.guard, l.soon, l.n = tonumber(guard), tonumber(soon), tonumber(n)
    l.cursor, l.low, l.cap, l.h = tonumber(cursor), tonumber(low), 1, 0
    if more ~= '' then
      a = attributes(more)
    end
    local tail = tonumber(a and a.m or 0) * 27
    if #s - tail >= at then
      local c = record(sub(s, at + 24, at + 39), sub(s, 1, #s - tail), at + 40)
      c.n, c.exp, c.holding = tonumber(sub(s, at, at + 12), 16), tonumber(sub(s, at + 13, at + 23), 16), true
      l.c, l.h = c, 1
    end
    l.used = l.h
  elseif kind == 'f' then
    bar = find(s, '|', 22, true)
    if bar > 22 then
      a = attributes(sub(s, 22, bar - 1))
    end
  else
    local c = record(sub(s, 22, 37), s, 38)
    c.n, c.holding = l.last, true
    c.exp = now + call('PTTL', KEYS[k]) - l.keep * 1000
    l.c, l.kind = c, 'a'
    if kind == 'A' then
      bar = find(s, '|', 38, true)
      a = attributes(sub(s, 38, bar - 1))
    end
  end
  if a then
    l.v = tonumber(a.v or 0)
    if a.m then
      l.tail, l.u = sub(s, -27 * tonumber(a.m)), tonumber(a.u)
    end
  end
  return l
end

-- side keys without a record are left over if they are of our types
local function fresh(l)
  local k = l.k
  if l.n or bad or call('EXISTS', KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]) == 0 then
    return
  end
  for i, want in ipairs({ 'zset', 'zset', 'hash' }) do
    local is = call('TYPE', KEYS[k + i]).ok
    if is ~= want and is ~= 'none' and not (i == 1 and is == 'list') then
      bad = redis.error_reply('HASPFOREIGN not a value of hasp beside the key')
      return
    end
  end
  call('DEL', KEYS[k + 1], KEYS[k + 2], KEYS[k + 3])
end

-- a crowd lives until its last expiry, and the last number for a while longer
local function outlive(l, exp)
  local till = math.max(exp + l.keep * 1000, l.u, l.v)
  if till > l.guard then
    l.guard, l.raise, l.dirty = till + l.keep * 250, true, true
  end
end

local function keep(l, seconds)
  if seconds > l.keep then
    l.keep, l.dirty = seconds, true
    if l.n then
      outlive(l, now)
    end
  end
end

local function hold(l, c)
  c.holding = true
  if l.kind == 'l' then
    if l.n > 0 and call('LINDEX', KEYS[l.k + 1], 0) == c.id then
      call('LPOP', KEYS[l.k + 1])
      call('HDEL', KEYS[l.k + 3], c.id)
      l.cursor = math.max(l.cursor - 1, 0)
    end
    l.c, l.h, l.used, l.dirty, l.changed = c, 1, 1, true, true
    return
  end
  l.h, l.used, l.g, l.dirty, l.changed = l.h + 1, l.used + c.w, c.n, true, true
  if c.c < l.cap then
    l.cap, l.capn = c.c, 1
  elseif c.c == l.cap then
    l.capn = l.capn + 1
  end
end

-- the arithmetic of hold backwards
local function unhold(l, c)
  l.h, l.used, l.changed = l.h - 1, l.used - c.w, true
  if c.c <= l.cap then
    l.capn = l.capn - 1
  end
end

-- when the last holder with the smallest capacity has gone, the others are asked for theirs
local function recap(l)
  if l.capn > 0 then
    return
  end
  l.cap = HUGE
  if l.h == 0 then
    return
  end
  for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[l.k + 1], '-inf', fmt('%.0f', l.g))) do
    local o = record(id, call('HGET', KEYS[l.k + 3], id), 14)
    if o.c < l.cap then
      l.cap, l.capn = o.c, 1
    elseif o.c == l.cap then
      l.capn = l.capn + 1
    end
  end
end

local function save(l, c)
  if l.kind == 'z' then
    call('HSET', KEYS[l.k + 3], c.id, fmt('%013x', c.n) .. text(c))
  elseif c.holding then
    l.dirty = true
  else
    call('HSET', KEYS[l.k + 3], c.id, fmt('%013x%011x', c.n, c.exp) .. text(c))
  end
end

local function place(l, c)
  if l.kind == 'z' then
    call('ZADD', KEYS[l.k + 1], fmt('%.0f', c.n), c.id)
    call('ZADD', KEYS[l.k + 2], fmt('%.0f', c.exp), c.id)
  elseif c.holding then
    l.c = c
  else
    call('RPUSH', KEYS[l.k + 1], c.id)
    l.low = math.min(l.low, c.exp)
    if l.n - l.h <= 1 then -- the list and the hash are new
      l.raise, l.dirty = true, true
    end
  end
  save(l, c)
  if l.kind == 'z' or not c.holding then
    l.soon = math.min(l.soon, c.exp)
  end
  outlive(l, c.exp)
end

-- turns a line into a crowd, of claims of capacity 1 only or of any
local function spread(l, mutexes)
  local c, was = l.c, l.changed
  l.guard, l.soon, l.used, l.h, l.n, l.dirty, l.raise, l.c = 0, HUGE, 0, 0, 0, true, true, nil
  if mutexes then
    l.kind, l.cap, l.cursor, l.low = 'l', 1, 0, HUGE
  else
    l.kind, l.g, l.cap, l.capn = 'z', 0, HUGE, 0
  end
  if c then
    hold(l, c)
    place(l, c)
    l.n, l.changed = 1, was
  end
end

-- turns a crowd of capacity 1 into one of any; the longer it is the longer that takes
local function widen(l)
  local ids, waiting = call('LRANGE', KEYS[l.k + 1], 0, -1), {}
  for i = 1, #ids do
    local s = call('HGET', KEYS[l.k + 3], ids[i])
    local c = record(ids[i], s, 25)
    c.n, c.exp = tonumber(sub(s, 1, 13), 16), tonumber(sub(s, 14, 24), 16)
    waiting[i] = c
  end
  call('DEL', KEYS[l.k + 1], KEYS[l.k + 3])
  spread(l, false)
  for i = 1, #waiting do
    l.n = l.n + 1
    place(l, waiting[i])
  end
end

local function enter(l, c)
  l.last, l.dirty = c.n, true
  if c.holding and (l.kind == 'n' or l.kind == 'f') then
    l.kind, l.c, l.changed = 'a', c, true
    return
  end
  if l.kind == 'l' and c.c > 1 then
    widen(l)
  elseif not l.n then
    spread(l, c.c == 1 and not (l.c and l.c.c > 1))
  end
  l.n = l.n + 1
  if c.holding then
    hold(l, c)
  else
    l.wanted = true
  end
  place(l, c)
end

local function remove(l, c)
  l.dirty = true
  if l.kind == 'a' then
    l.kind, l.c, l.changed = 'f', nil, true
    return
  end
  if l.kind == 'l' then
    l.n = l.n - 1
    if c.holding then
      l.c, l.h, l.used, l.changed = nil, 0, 0, true
      return
    end
    call('HDEL', KEYS[l.k + 3], c.id)
    call('LREM', KEYS[l.k + 1], 1, c.id)
    l.cursor = math.max(l.cursor - 1, 0)
    return
  end
  call('HDEL', KEYS[l.k + 3], c.id)
  call('ZREM', KEYS[l.k + 1], c.id)
  call('ZREM', KEYS[l.k + 2], c.id)
  l.n = l.n - 1
  if c.holding then
    unhold(l, c)
    recap(l)
  end
end

local function load(l, id)
  if l.c and l.c.id == id then
    return l.c
  end
  local s = call('HGET', KEYS[l.k + 3], id)
  if not s then
    return nil
  end
  if l.kind == 'l' then
    local c = record(id, s, 25)
    c.n, c.exp, c.holding = tonumber(sub(s, 1, 13), 16), tonumber(sub(s, 14, 24), 16), false
    return c
  end
  local c = record(id, s, 14)
  c.n = tonumber(sub(s, 1, 13), 16)
  c.holding = c.n <= l.g
  return c
end

-- the claim with that id
local function get(l, id)
  if l.kind == 'a' then
    return l.c.id == id and l.c or nil
  end
  if not l.n then
    return nil
  end
  local c = load(l, id)
  if c and l.kind == 'z' then
    c.exp = tonumber(call('ZSCORE', KEYS[l.k + 2], id))
  end
  return c
end

-- Looks at a part of a list for the dead; those in front are found by handing over
-- anyway. The list has been gone through when the cursor is back at its front, and
-- "soon" is then the first expiry of all.
local function sweeplist(l)
  if l.c and l.c.exp < now then
    removals = removals - 1
    remove(l, l.c)
  end
  if l.soon >= now then
    return
  end
  local ids = call('LRANGE', KEYS[l.k + 1], l.cursor, l.cursor + LOOK - 1)
  local dead, looked = {}, 0
  if #ids > 0 then
    local texts = call('HMGET', KEYS[l.k + 3], unpack(ids))
    for i = 1, #ids do
      local exp = tonumber(sub(texts[i], 14, 24), 16)
      if exp >= now then
        l.low = math.min(l.low, exp)
      elseif removals > 0 then
        removals = removals - 1
        call('LSET', KEYS[l.k + 1], l.cursor + i - 1, '')
        dead[#dead + 1] = ids[i]
      else
        l.dead, l.capped = l.cursor == 0 and i == #dead + 1, true
        break
      end
      looked = i
    end
  end
  if #dead > 0 then
    call('LREM', KEYS[l.k + 1], 0, '')
    call('HDEL', KEYS[l.k + 3], unpack(dead))
    l.n = l.n - #dead
  end
  l.cursor, l.dirty = l.cursor + looked - #dead, true
  if looked == #ids and l.cursor >= l.n - l.h then
    l.soon, l.cursor, l.low = l.low, 0, HUGE
  end
end

local function sweep(l)
  if l.kind == 'l' then
    return sweeplist(l)
  end
  if l.kind == 'a' then
    if l.c.exp < now then
      removals = removals - 1
      remove(l, l.c)
    end
    return
  end
  if l.kind ~= 'z' or l.soon >= now then
    return
  end
  local ids = call('ZRANGEBYSCORE', KEYS[l.k + 2], '-inf', fmt('(%.0f', now), 'LIMIT', 0, removals + 1)
  l.dead = #ids > removals
  l.capped = l.capped or l.dead
  if l.dead then
    ids[#ids] = nil
  end
  if #ids > 0 then
    local texts = call('HMGET', KEYS[l.k + 3], unpack(ids))
    call('HDEL', KEYS[l.k + 3], unpack(ids))
    call('ZREM', KEYS[l.k + 1], unpack(ids))
    call('ZREM', KEYS[l.k + 2], unpack(ids))
    for i = 1, #ids do
      if tonumber(sub(texts[i], 1, 13), 16) <= l.g then
        unhold(l, record(ids[i], texts[i], 14))
      end
    end
    recap(l)
    removals, l.n, l.dirty = removals - #ids, l.n - #ids, true
  end
  if not l.dead then
    l.soon, l.dirty = tonumber(call('ZRANGE', KEYS[l.k + 2], 0, 0, 'WITHSCORES')[2] or HUGE), true
  end
end

local function fits(l, w, c)
  return w <= math.min(c, l.cap) - l.used
end

-- the first that waits
local function front(l)
  if l.kind == 'l' then
    return call('LINDEX', KEYS[l.k + 1], 0)
  end
  return call('ZRANGEBYSCORE', KEYS[l.k + 1], fmt('(%.0f', l.g), '+inf', 'LIMIT', 0, 1)[1]
end

local function hex(id)
  return fmt('%02x%02x%02x%02x%02x%02x', string.byte(id, 1, 6))
end

local function signal(kind, l, c)
  news[#news + 1] = { 'hasp:i:' .. hex(c.id), kind .. fmt('%013x', c.n) .. c.id .. KEYS[l.k] }
end

-- grants what fits; a claim of several keys is told instead, and everybody behind it
-- waits on
local function handover(l)
  if not l.n or l.dead then
    return
  end
  while l.n > l.h do
    if l.kind == 'l' and l.h == 1 then
      return
    end
    local c = load(l, front(l))
    while c and c.exp and c.exp < now do -- in a list the sweep may not have seen it
      if removals <= 0 then
        l.capped = true
        return
      end
      removals = removals - 1
      remove(l, c)
      c = l.n > l.h and load(l, front(l))
    end
    if not c or not fits(l, c.w, c.c) then
      return
    end
    if c.several then
      if not c.T then
        c.T = '1'
        save(l, c)
        signal('T', l, c)
      end
      return
    end
    if grants <= 0 then
      l.capped = true
      return
    end
    grants = grants - 1
    hold(l, c)
    signal('G', l, c)
  end
end

local function settle(from, to)
  for i = from or 1, to or #lines do
    sweep(lines[i])
    handover(lines[i])
  end
end

local function admits(l, w, c)
  if l.kind == 'a' then
    return w + l.c.w <= math.min(c, l.c.c)
  end
  return not l.n or l.n == 0 or l.n == l.h and not l.dead and fits(l, w, c)
end

-- the end of the remembered entry of that id, or nil
local function remembered(l, id)
  local at = l.tail ~= '' and find(l.tail, id, 1, true)
  while at and at % 27 ~= 1 do
    at = find(l.tail, id, at + 1, true)
  end
  return at and { at, tonumber(sub(l.tail, at + 16, at + 26), 16) } or nil
end

local function remember(l, id, till)
  local known = remembered(l, id)
  if known then
    till = math.max(till, known[2])
    l.tail = sub(l.tail, 1, known[1] - 1) .. sub(l.tail, known[1] + 27)
  end
  local old = 0
  while old < 64 and old * 27 < #l.tail and tonumber(sub(l.tail, old * 27 + 17, old * 27 + 27), 16) < now do
    old = old + 1
  end
  l.tail = sub(l.tail, old * 27 + 1) .. id .. fmt('%011x', till)
  l.u, l.dirty = math.max(l.u, till), true
end

local function write(l)
  local k, extra = l.k, ''
  if l.tail ~= '' and l.u >= now then
    extra = fmt('m%du%.0f', #l.tail / 27, l.u)
  else
    l.tail, l.u = '', 0
  end
  if l.v > now then
    extra = extra .. fmt('v%.0f', l.v)
  end
  if l.n == 0 then
    l.kind, l.n = 'f', nil
  end
  if l.n then
    local s
    outlive(l, 0)
    if l.kind == 'z' then
      s = fmt('1z%013x%06x %.0f %.0f %.0f %.0f %.0f %d %d %d ', l.last, l.keep, l.g, l.guard,
        l.soon, l.used, l.cap, l.capn, l.h, l.n) .. extra .. '|'
    else
      s = fmt('1l%013x%06x %.0f %.0f %d %d %.0f ', l.last, l.keep, l.guard, l.soon, l.n, l.cursor, l.low) .. extra .. '|'
      if l.c then
        s = s .. fmt('%013x%011x', l.c.n, l.c.exp) .. l.c.id .. text(l.c)
      end
    end
    call('SET', KEYS[k], s .. l.tail, 'PXAT', fmt('%.0f', l.guard))
    if l.raise then
      for i = 1, 3 do
        call('PEXPIREAT', KEYS[k + i], fmt('%.0f', l.guard))
      end
    end
    return
  end
  if l.kind == 'n' then
    l.kind = 'f'
  end
  l.keep = math.max(l.keep, 10, math.ceil((math.max(l.u, l.v) - now) / 1000))
  if l.kind == 'f' then
    call('SET', KEYS[k], fmt('1f%013x%06x', l.last, l.keep) .. extra .. '|' .. l.tail, 'PX', fmt('%.0f', l.keep * 1000))
    return
  end
  local c = l.c
  local plain = extra == '' and c.g == 0 and c.i == 0 and not (c.F or c.R or c.several) and c.exp - c.n / 1000 >= 100
  call('SET', KEYS[k], fmt(plain and '1a%013x%06x' or '1A%013x%06x', l.last, l.keep) .. c.id .. text(c, extra) .. l.tail,
    'PX', fmt('%.0f', c.exp - now + l.keep * 1000))
end

-- writes what has changed, then tells whom it concerns: a refused signal must not
-- stop a step half way, and is only noted in the answer
local function finish(result)
  for i = 1, #lines do
    local l = lines[i]
    if l.dirty then
      write(l)
    elseif l.moved then
      call('PEXPIRE', KEYS[l.k], fmt('%.0f', l.c.exp - now + l.keep * 1000))
    end
    if l.v > now then
      local watchers = 'hasp:w:' .. KEYS[l.k]
      if l.wanted then
        news[#news + 1] = { watchers, 'W' }
      end
      if l.changed then
        news[#news + 1] = { watchers, 'C' }
      end
    end
  end
  local refused = false
  for i = 1, #news do
    refused = type(redis.pcall('PUBLISH', news[i][1], news[i][2])) == 'table' or refused
  end
  if refused and result and result[5] then
    result[5] = result[5] + 8
  end
end

-- sets the expiry, and how much of it is grace
local function reschedule(l, c, exp, grace)
  local redo = c.g ~= grace
  c.g = grace
  if l.kind == 'a' then
    l.moved = l.moved or exp ~= c.exp
    l.dirty = l.dirty or redo
    c.exp = exp
    return
  end
  if l.kind == 'l' then
    if redo or exp ~= c.exp then
      c.exp = exp
      save(l, c)
      outlive(l, exp)
    end
    return
  end
  if redo then
    save(l, c)
  end
  if exp ~= c.exp then
    c.exp = exp
    call('ZADD', KEYS[l.k + 2], fmt('%.0f', exp), c.id)
    l.soon = math.min(l.soon, exp) -- Fix may shorten
    outlive(l, exp)
  end
end

-- when so many of the claims ahead will have died that this one fits, the first 16
-- taken into account, and the first holder in its way
local function way(l, c, ahead)
  local n = math.min(ahead, 16)
  if n == 0 then
    return now, nil
  end
  if l.kind == 'l' then -- all of them must be gone
    local at = l.c and l.c.exp or 0
    n = math.min(n, 8) - l.h
    if n > 0 then
      local texts = call('HMGET', KEYS[l.k + 3], unpack(call('LRANGE', KEYS[l.k + 1], 0, n - 1)))
      for i = 1, n do
        at = math.max(at, tonumber(sub(texts[i], 14, 24), 16))
      end
    end
    return at + 1, l.c
  end
  local ids = call('ZRANGE', KEYS[l.k + 1], 0, n - 1)
  local texts = call('HMGET', KEYS[l.k + 3], unpack(ids))
  local exps = call('ZMSCORE', KEYS[l.k + 2], unpack(ids))
  local list, holder = {}, nil
  for i = 1, n do
    local o = record(ids[i], texts[i], 14)
    o.exp, o.holding = tonumber(exps[i]), tonumber(sub(texts[i], 1, 13), 16) <= l.g
    list[i] = o
    if not holder and o.holding and o.exp >= now then
      holder = o
    end
  end
  table.sort(list, function(a, b) return a.exp > b.exp end)
  local cap = c.c
  local room = cap - c.w
  for i = 1, n do
    local o = list[i]
    if o.exp < now then
      break
    end
    if o.c < cap then
      room, cap = room - cap + o.c, o.c
    end
    if o.w > room or o.several and not o.holding then
      return o.exp + 1, holder
    end
    room = room - o.w
  end
  if ahead == n then
    return now, nil
  end
  -- what is in its way stands further back: one of those must go first. Many scores are slow.
  local at = ahead > 2 * n and now + 2000 or HUGE
  exps = call('ZMSCORE', KEYS[l.k + 2], unpack(call('ZRANGE', KEYS[l.k + 1], n, math.min(ahead, 2 * n) - 1)))
  for i = 1, #exps do
    at = math.min(at, tonumber(exps[i]))
  end
  return math.max(at, now) + 1, holder
end

-- a holder of a line but that claim
local function holder(l, but)
  if l.c then
    return l.c ~= but and l.c or nil
  end
  if l.kind ~= 'z' or l.h == 0 then
    return nil
  end
  local ids = call('ZRANGE', KEYS[l.k + 1], 0, math.min(l.h, 2) - 1)
  for i = 1, #ids do
    if not but or ids[i] ~= but.id then
      local c = get(l, ids[i])
      if c.exp >= now then
        return c
      end
    end
  end
end

-- the answer: state, number, life, look again, 1 more + 2 behind + 4 revoked, ahead,
-- name of the holder, its rest
local function answer(ls, state, number, life, look, flags, ahead, h)
  for i = 1, #ls do
    if ls[i].capped then
      flags = flags - flags % 2 + 1
    end
  end
  return { state, number, life, look, flags, ahead, h and h.name or '', h and h.exp - now or 0 }
end

local function gone(number, ls, revoked)
  local h
  for i = 1, #ls do
    h = h or holder(ls[i], revoked and get(ls[i], revoked.id))
  end
  return answer(ls, 4, number, 0, 0, revoked and 4 or 0, 0, h)
end

local function refused(ls, w, c)
  local ahead, h = 0, nil
  for i = 1, #ls do
    local l = ls[i]
    ahead = math.max(ahead, l.n or l.kind == 'a' and 1 or 0)
    if not h and not admits(l, w, c) then
      h = holder(l)
    end
  end
  return answer(ls, 3, 0, 0, 0, 0, ahead, h)
end

-- how many stand before a claim. Numbers rise along a list, so the place of one that
-- waits can be halved down to where looking through it is cheap.
local function rankof(l, c)
  if l.kind == 'z' then
    return call('ZRANK', KEYS[l.k + 1], c.id)
  end
  if c.holding then
    return 0
  end
  local low, high = 0, l.n - l.h
  while high - low > 16 do
    local middle = math.floor((low + high) / 2)
    local text = call('HGET', KEYS[l.k + 3], call('LINDEX', KEYS[l.k + 1], middle))
    if tonumber(sub(text, 1, 13), 16) <= c.n then
      low = middle
    else
      high = middle
    end
  end
  local ids = call('LRANGE', KEYS[l.k + 1], low, high - 1)
  for i = 1, #ids do
    if ids[i] == c.id then
      return low + i - 1 + l.h
    end
  end
  return l.n
end

-- how a live claim stands: cs are its records in the lines ls
local function standing(ls, cs)
  local c, ahead, behind, look, h = cs[1], 0, 0, now, nil
  for i = 1, #ls do
    local l = ls[i]
    if l.n then
      local rank = 0
      if l.n > 1 and not (cs[i].holding and l.h == 1) then
        rank = rankof(l, c)
      end
      ahead = math.max(ahead, rank)
      if l.n > l.h and l.n > rank + 1 then
        behind = 2
      end
      if not c.holding then
        local at, in_way = way(l, c, rank)
        look, h = math.max(look, at), h or in_way
      end
    end
  end
  if c.holding then
    return answer(ls, 1, c.n, c.exp - c.g - now, 0, behind, ahead, nil)
  end
  return answer(ls, 2, c.n, c.exp - now, math.max(look - now, 1), behind, ahead, h)
end

-- the records of a claim in its lines, if it stands in all of them; what is left of one
-- that was removed from some goes from the others too
local function collect(id, ls)
  local cs, found = {}, 0
  for i = 1, #ls do
    local c = get(ls[i], id)
    if c then
      cs[i], found = c, found + 1
    end
  end
  local whole = found == #ls
  for i = 2, #ls do
    whole = whole and cs[i].n == cs[1].n
  end
  if whole then
    return cs
  end
  for i = 1, #ls do
    if cs[i] then
      remove(ls[i], cs[i])
      handover(ls[i])
    end
  end
  return nil
end

-- grants a claim of several keys if it has come to fit in all of its lines
local function taketurn(ls, cs)
  if cs[1].holding or #ls == 1 then
    return
  end
  for i = 1, #ls do
    local l = ls[i]
    if l.dead or front(l) ~= cs[i].id or not fits(l, cs[i].w, cs[i].c) then
      return
    end
  end
  if grants <= 0 then
    ls[1].capped = true
    return
  end
  grants = grants - 1
  for i = 1, #ls do
    hold(ls[i], cs[i])
    handover(ls[i])
  end
end

-- moves the expiry of a live claim; mode 1 extends, 2 fixes
local function renew(ls, cs, number, mode, life)
  local c = cs[1]
  for i = 1, #ls do
    if cs[i].R then
      return gone(number, ls, cs[i])
    end
  end
  if number ~= 0 and number ~= c.n then
    return gone(number, ls)
  end
  taketurn(ls, cs)
  for i = 1, #ls do
    local l, o = ls[i], cs[i]
    keep(l, keepfor(life.hold))
    if o.F then
      -- nothing moves it
    elseif not o.holding then
      reschedule(l, o, math.max(o.exp, now + life.wait), 0)
    elseif mode == 2 then
      o.F, l.dirty, o.g = '1', true, 0
      l.soon = l.n and math.min(l.soon, now + life.hold)
      if l.n then
        save(l, o)
      end
      reschedule(l, o, now + life.hold, 0)
    else
      local trust = math.max(o.exp - o.g, now + life.hold)
      local exp = math.max(o.exp, now + life.hold + life.grace)
      reschedule(l, o, exp, exp - trust)
    end
  end
  return standing(ls, cs)
end

-- takes a claim out of the lines
local function leave(ls, id, number, remembering)
  local left
  for i = 1, #ls do
    local l = ls[i]
    local c = get(l, id)
    if c then
      left = c.n
      remove(l, c)
      handover(l)
    end
    if remembering > 0 then
      remember(l, id, now + remembering)
    end
  end
  if left then
    return answer(ls, 5, left, 0, 0, 0, 0, nil)
  end
  return gone(number, ls)
end
