-- session_list.lua - the sessions of one stripe that live, in the order of their ids, a bounded number at a time.
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  the id after which to go on, or ""   ARGV[2]  remember_ms   ARGV[3]  how many, 1 to 1000
--   ARGV[4]  what the reply before says of the search that goes on, or ""
--   returns  {"listed", seq, id after which to go on or "" when the stripe is done,
--             {{id, identity or "", holder, meta or "", ttl_ms, expires in ms, for how long it lives, how many
--               leases it holds, how many it lost otherwise}, ...}, store time, of the search or ""}
--
-- The index has no order of ids, and leases, too: what stands in it is searched SCAN_MAX at a time for the lowest ids,
-- and no item is told before the last step. Of the search goes on: the cursor of ZSCAN, which meets all that stays
-- there, some of it twice, and the lowest ids so far. What a session holds is counted whole, so one step looks at no
-- more than about LOOK_MAX sessions, or one and LEASES_MAX of what it holds.
local LEASES_MAX, SCAN_MAX, LOWEST_MAX = 100, 1000, 48
local LOOK_MAX = ARGV[4] == '' and 96 or LOWEST_MAX - 1 -- and the one behind them tells that there are more
local BEFORE_ALL = '!' -- where a search goes on that began at ""
local after, limit, looked = ARGV[1], tonumber(ARGV[3]), 0

-- nil: it does not live.
local function item_of(id)
    local key = KEYS[1] .. ':s:' .. id
    local session, held, lost = session_read(key), 0, 0
    if not (session and session.live) then
        return nil
    end
    local names = redis.call('HKEYS', session_holds_key(key))
    for _, name in ipairs(names) do
        local slash = string.find(name, '/', 1, true)
        held, lost = held + (slash and slash > 1 and 1 or 0), lost + (slash and 0 or 1)
    end
    looked = looked + #names * LOOK_MAX / LEASES_MAX
    local v = redis.call('HMGET', key, 'i', 'o', 'm', 'g')
    return { id, v[1] or '', v[2], v[3] or '', session.ttl_ms, session.deadline - NOW,
        NOW - tonumber(v[4]), held, lost }
end

local ids, is_there = {}, {}
local function take(id)
    ids[#ids + 1] = id > after and not is_there[id] and id or nil
    is_there[id] = true
end
for id in string.gmatch(ARGV[4], ' (%S+)') do
    take(id)
end
local some = redis.call('ZSCAN', KEYS[2], string.match(ARGV[4], '^%d+') or '0', 'COUNT', SCAN_MAX,
    'MATCH', ':s:' .. string.rep('?', 22))
for i = 1, #some[2], 2 do
    take(string.sub(some[2][i], 4))
end
table.sort(ids)
if some[1] ~= '0' then
    local lowest = table.concat(ids, ' ', 1, math.min(#ids, LOWEST_MAX))
    return { 'listed', SEQ, after ~= '' and after or BEFORE_ALL, {}, NOW, some[1] .. ' ' .. lowest }
end

local items, go_on = {}, ''
for i, id in ipairs(ids) do
    if #items == limit or looked >= LOOK_MAX then
        go_on = ids[i - 1]
        break
    end
    looked = looked + 1
    items[#items + 1] = item_of(id)
end
return { 'listed', SEQ, go_on, items, NOW, '' }
