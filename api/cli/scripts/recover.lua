-- recover.lua - begin a new epoch of the store by the word of an operator, who knows a number that no token is
-- above. All holds end; all services come anew, and the first lease service joins without being vouched for.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}
--   ARGV[1]  "SCHEMA:ID" that the store must have if it has one, or "": whichever it has
--   ARGV[2]  "SCHEMA:ID" for one that has none
--   ARGV[3]  floor, 1 to 999999999999999   ARGV[4]  the epoch will be above this
--   ARGV[5]  "force": also a store that is in order; "new-id": it is a copy, and gets the id of ARGV[2],
--            under which nothing was ever granted, so that the floor is whatever the copy knows; else ""
--   returns  {"recovered", epoch, "SCHEMA:ID", how many members are not listed now, floor}
--            Which gateways had sent what to an upstream nobody knows then: an operator has to say that
--            none of it is under way any more (pawl resolve --gateway whichever_it_was --dead --settled).
--            {"another", identity}   {"too-low", the least that the floor must be}   {"in-order"}
--            {"alive"}: with new-id, and somebody is at work on it, be it the original
--            in all four nothing was changed
local FLOOR, IS_NEW = tonumber(ARGV[3]), ARGV[5] == 'new-id'
local store, stripes, unknown = store_known(ARGV[1] ~= '' and ARGV[1] or nil)
local all, ids = members_read()
if store.id and unknown then
    return unknown
end

local least, lives, fresh = math.max(stripes.top, stripes.ceiling, store.ceiling), false, false
for _, id in ipairs(ids) do
    local one = all[id]
    least = math.max(least, tonumber(one.floor) or 0, tonumber(one.rfloor) or 0, tonumber(one.rpassed) or 0)
    fresh = fresh or one.state ~= 'out' and is_fresh(one)
    lives = lives or is_live_lease(one) or (one.role == 'lease' and one.first == '1' and is_fresh(one))
end
if IS_NEW and fresh then
    return { 'alive' }
elseif IS_NEW then
    FLOOR = math.min(math.max(FLOOR, least), TOKEN_LAST)
end
if FLOOR < least then
    return { 'too-low', least }
end
if ARGV[5] ~= 'force' and not IS_NEW and store_serves(store) and lives then
    return { 'in-order' }
end

-- Lease services that live do not know of this yet, and could admit what was before: one that is listed by
-- nobody else, or a majority of the registrars.
local registrars = registrars_of(store.majority == '1' and store.registrars or '')
local before = { registrars.count > 0 and registrars.most or 1 }
for _, id in ipairs(ids) do
    local one, counts = all[id], registrars.count == 0 or registrars.is[id]
    local knew = has_reported(store, all, id) or (not store.gate and one.state == 'in')
    before[#before + 1] = counts and knew and is_fresh(one) and one.role == 'lease' and id or nil
end

-- No report is asked for any more, so the epochs that were reported count here.
local epoch = math.max(store.epoch, stripes.alive, store.alive, tonumber(ARGV[4]),
    tonumber(store.ballot) or 0)
for _, id in ipairs(ids) do
    epoch = math.max(epoch, tonumber(all[id].epoch) or 0, tonumber(all[id].repoch) or 0)
    store.roll = math.max(store.roll, tonumber(all[id].roll) or 0, tonumber(all[id].rroll) or 0)
    for life in string.gmatch(all[id].rlist or '', 'doubt %S+ %S+ (%d+)') do
        epoch = math.max(epoch, tonumber(life))
    end
    member_drop(id)
end
epoch = epoch + 1
local identity = not IS_NEW and store.id or ARGV[2]
local life = life_text(identity, whole(epoch), whole(epoch), whole(store.clock), whole(FLOOR))
for i = 0, STRIPES - 1 do
    redis.call('HSET', stripe_key(i), 'life', life, 'seq', whole(stripes.seq[i] + 1), 'counter', whole(FLOOR))
    redis.call('PERSIST', stripe_key(i))
end
redis.call('HSET', KEYS[1], 'id', identity, 'epoch', whole(epoch), 'run', redis_run() or '',
    'time', whole(store.time), 'alive', whole(epoch), 'clock', whole(store.clock), 'ceiling', whole(FLOOR),
    'gate', '', 'gaterun', '', 'why', '', 'how', 'recovered', 'open', '1', 'lost', whole(epoch),
    'registrars', registrars_of(store.registrars).count, 'majority', '',
    'before', table.concat(before, ' '))
if store.copies then
    redis.call('HSET', KEYS[1], 'insync', insync_begin(whole(epoch), redis_run(), store.copies),
        'needed', '', 'growing', '', 'added', '', 'changed', whole(store.roll + 1), 'syncs', '', 'ballot', '',
        'order', '', 'accepted', '')
end
redis.call('PERSIST', KEYS[1])
redis.call('HSET', DOUBT, EVERYBODY, 'open ' .. whole(epoch))
members_changed(store)
return { 'recovered', epoch, identity, #ids, FLOOR }
