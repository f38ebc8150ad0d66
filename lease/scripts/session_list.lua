-- session_list.lua - the sessions of one stripe that live, in the order of their ids, a bounded number at a time.
-- flags: allow-oom
-- reads: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  the id after which to go on, or ""   ARGV[2]  remember_ms   ARGV[3]  how many, 1 to 1000
--   ARGV[4]  of the search that goes on (lib/lowest.lua), or ""
--   returns  {"listed", seq, id after which to go on or "" when the stripe is done,
--             {{id, identity or "", holder, meta or "", ttl_ms, expires in ms, for how long it lives, how many
--               leases it holds, how many it lost otherwise}, ...}, store time, of the search or ""}
--
-- What a session holds is counted whole, so one step looks at no more than about LOOK_MAX sessions, or one and LEASES_MAX of
-- what it holds.
local LEASES_MAX, LOOK_MAX = 100, 96
local after, limit, looked = ARGV[1], tonumber(ARGV[3]), 0

-- nil: it does not live.
local function item_of(id)
    local key = KEYS[1] .. ':s:' .. id
    local session = session_read(key)
    if not (session and session.live) then
        return nil
    end
    local held, lost, names = session_count(key)
    looked = looked + names * LOOK_MAX / LEASES_MAX
    local v = redis.call('HMGET', key, 'i', 'o', 'm', 'g')
    return { id, v[1] or '', v[2], v[3] or '', session.ttl_ms, session.deadline - NOW,
        NOW - tonumber(v[4]), held, lost }
end

local ids, go_on, search = lowest_names(':s:' .. string.rep('?', 22), 3, after, ARGV[4])
if not ids then
    return { 'listed', SEQ, go_on, {}, NOW, search }
end

local items = {}
for i, id in ipairs(ids) do
    if #items == limit or looked >= LOOK_MAX then
        go_on = ids[i - 1]
        break
    end
    looked = looked + 1
    items[#items + 1] = item_of(id)
end
return { 'listed', SEQ, go_on, items, NOW, '' }
