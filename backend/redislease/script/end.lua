-- Revokes stays of a key, or with force removes them.
-- KEYS   4 for the key, then 4 for each further line that stays of several keys stand in
-- ARGV   1 "1": with force, then the numbers
-- Result the numbers found; or, where a stay stands in lines that are not in KEYS, nothing is done
--        and the answer is 0 and the names of those lines
-- Redis runs a script alone, so all of this is one atomic step.
local t = redis.call('TIME')
--@line
local force = ARGV[1] == '1'
for k = 1, #KEYS, 4 do
  open(k)
  if bad then
    return bad
  end
end
local here = lines[1]

-- the one that waits in a list with that number
local function waiter(l, n)
  local low, high = 0, l.n - l.h - 1
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local c = load(l, call('LINDEX', KEYS[l.k + 1], middle))
    if c.n == n then
      return c
    elseif c.n < n then
      low = middle + 1
    else
      high = middle - 1
    end
  end
end

-- the stay with that number, if it is alive
local function stay(n)
  local c
  if here.c and here.c.n == tonumber(n) then
    c = here.c
  elseif here.kind == 'l' then
    c = waiter(here, tonumber(n))
  elseif here.kind == 'z' then
    local id = redis.call('ZRANGEBYSCORE', KEYS[here.k + 1], n, n)[1]
    c = id and get(here, id)
  end
  return c and c.exp >= now and c or nil
end

-- names of the lines it stands in, as far as they are known
local function names(c)
  if not c.several then
    return { KEYS[here.k] }
  end
  local all = c.all
  if not all then
    local l = byname[c.first]
    local head = l and get(l, c.id)
    if l and not head then
      return { KEYS[here.k] }
    end
    all = head and head.all
  end
  if not all then
    return { c.first }
  end
  local list, at = {}, 1
  while at <= #all do
    local colon = find(all, ':', at, true)
    local len = tonumber(sub(all, at, colon - 1))
    list[#list + 1] = sub(all, colon + 1, colon + len)
    at = colon + len + 1
  end
  return list
end

local stays, missing = {}, {}
for a = 2, #ARGV do
  local c = stay(ARGV[a])
  if c then
    stays[#stays + 1] = c
    for _, name in ipairs(names(c)) do
      if not byname[name] then
        missing[#missing + 1] = name
      end
    end
  end
end
if #missing > 0 then
  return { 0, missing }
end
settle()
local found = {}
for _, seen in ipairs(stays) do
  local c = get(here, seen.id)
  if c and c.n == seen.n then
    found[#found + 1] = string.format('%.0f', c.n)
    local out = force or not c.holding
    signal(out and 'E' or 'R', here, c)
    for _, name in ipairs(names(c)) do
      local l = byname[name]
      local o = get(l, c.id)
      if o and out then
        remove(l, o)
      elseif o then
        o.R, l.dirty = '1', true
        if l.n then
          save(l, o)
        end
      end
    end
  end
end
settle()
finish()
return { 1, found }
