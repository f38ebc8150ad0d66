-- registrar.lua - one registrar more, or one less (docs/decisions/0044). A majority of those that are must have
-- recorded who they are: none of before goes by what was then. A majority of those that will be must have recorded
-- all that counts: any two majorities of before and after meet.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}   ARGV[1]  "add" | "remove"   ARGV[2]  member id
--   ARGV[3]  of "add", perhaps: a registrar, which is to be removed behind that
--   returns  {"changed", how many there are now, how many must be heard}
--            {"empty"}   {"another", identity}   {"none"}: no majority counts in this store
--            {"gated"}   {"already"}: it is one, or none   {"other"}: ARGV[3] is none
--            {"unknown"}: no lease service that is in   {"last"}   {"full"}: there are 6
--            {"unrecorded"}: too few of those that would be have recorded all, or live
--            in all of them nothing was changed
local ID, COUNT_MAX = ARGV[2], 6
local store, _, unknown = store_known()
local all = members_read()
if unknown then
    return unknown
end
if store.majority ~= '1' then
    return { 'none' }
end
if not store_serves(store) then
    return { 'gated' }
end
local before, ids = registrars_of(store.registrars), {}
if ARGV[3] and not before.is[ARGV[3]] then
    return { 'other' }
end
if (ARGV[1] == 'add') == (before.is[ID] or false) then
    return { 'already' }
end
for _, id in ipairs(before.ids) do
    ids[#ids + 1] = id ~= ID and id or nil
end
if ARGV[1] == 'add' then
    if not (all[ID] and all[ID].role == 'lease' and all[ID].state == 'in') then
        return { 'unknown' }
    end
    ids[#ids + 1] = ID
end
if #ids == 0 or #ids > COUNT_MAX then
    return { #ids == 0 and 'last' or 'full' }
end
local registrars = registrars_of(#ids .. ' ' .. table.concat(ids, ' '))
local function have(of, field, least)
    return (registrars_reached(of, all, field) or -1) >= least
end
for id, one in pairs(all) do
    all[id] = is_live_lease(one) and one or nil
end
if not (have(before, 'roll', store.roll) and have(registrars, 'roll', store.roll)
    and have(registrars, 'floor', store.ceiling)) then
    return { 'unrecorded' }
end
redis.call('HSET', KEYS[1], 'registrars', registrars.count .. ' ' .. table.concat(ids, ' '))
members_changed(store)
return { 'changed', registrars.count, registrars.most }
