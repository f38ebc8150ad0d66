-- session_list.lua - the sessions of one stripe that live, in the order of their ids, a bounded number at a time.
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  the id after which to go on, or ""   ARGV[2]  remember_ms   ARGV[3]  how many, 1 to 1000
--   returns  {"listed", seq, id after which to go on or "" when the stripe is done,
--             {{id, identity or "", holder, meta or "", ttl_ms, expires in ms, for how long it lives, how many
--               leases it holds, how many it lost otherwise}, ...}, store time}
--
-- As list.lua: they are sorted here. What a session holds is counted whole, so one step looks at no more than
-- about LOOK_MAX sessions, or one and LEASES_MAX of what it holds.
local LOOK_MAX, LEASES_MAX = 96, 100
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

local ids = {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    local id = string.match(member, '^:s:(.*)$')
    ids[#ids + 1] = id and id > after and id or nil
end
table.sort(ids)

local items, go_on = {}, ''
for i, id in ipairs(ids) do
    if #items == limit or looked >= LOOK_MAX then
        go_on = ids[i - 1]
        break
    end
    looked = looked + 1
    items[#items + 1] = item_of(id)
end
return { 'listed', SEQ, go_on, items, NOW }
