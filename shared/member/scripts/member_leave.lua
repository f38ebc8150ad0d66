-- member_leave.lua - a process ends in an orderly way: what it saw need not be asked of it any more.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}
--   ARGV[1]  "SCHEMA:ID"   ARGV[2]  member id   ARGV[3]  incarnation   ARGV[4]  epoch that it was admitted in
--   ARGV[5]  run_id of the Redis on this link
--   returns {"left", roll, floor, members}: gone from the list
--           {"out", roll, floor, members}: a lease service stays listed, for its floor, while no other live
--             one's covers all that was granted; a registrar always does
--             roll, floor, members: to be recorded at the end, so that a store that is put back to before
--             while nobody is there shows it
--           {"not-a-member"}: not of this epoch of the store; nothing was changed
local stripes = stripes_read()
local store = store_read(stripes)
local all, ids = members_read()
local me = all[ARGV[2]]
if store.id ~= ARGV[1] or store.gate or not me or me.incarnation ~= ARGV[3] or me.epoch ~= ARGV[4]
    or store.epoch ~= tonumber(ARGV[4]) or me.state == 'forgotten'
    or store.run ~= redis_run(ARGV[5]) then -- it may be asked yet what it has seen
    return { 'not-a-member' }
end
local is_registrar = registrars_of(store.registrars).is[ARGV[2]]
local covered, somebody_in = store.majority == '1', false
for _, id in ipairs(ids) do
    somebody_in = somebody_in or (id ~= ARGV[2] and all[id].role == 'lease' and all[id].state == 'in')
    covered = covered or (id ~= ARGV[2] and is_live_lease(all[id])
        and tonumber(all[id].floor) >= math.max(store.ceiling, stripes.top))
end
members_changed(store)
if me.role == 'lease' and me.state ~= 'pending' and (is_registrar or not covered) then
    me.state = 'out'
    redis.call('HSET', member_key(ARGV[2]), 'state', 'out')
elseif me.role ~= 'lease' or me.state ~= 'pending' or somebody_in then
    member_drop(ARGV[2])
    all[ARGV[2]] = nil
end
-- A pending one stays as it is while nobody is in: its list may be the only one that leads on.
local floor = whole(math.max(store.ceiling, stripes.top))
return { all[ARGV[2]] and 'out' or 'left', store.roll, floor, members_list(store, all, ids) }
