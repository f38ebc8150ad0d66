-- look.lua - who holds the lease, and how many wait for it.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
-- use: shared/record/history.lua
-- use: lease/scripts/lib/ends.lua
-- use: lease/scripts/lib/many.lua
-- use: lease/scripts/lib/grant.lua
-- use: lease/scripts/lib/desk.lua
-- use: lease/scripts/lib/all.lua
-- use: lease/scripts/lib/line.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   returns  {"looked", seq, "free" | "held" | "delayed", last token or 0, its epoch or the stripe's,
--             "exclusive" | "shared" | "permits" | "", how many wait,
--             {{token, holder, expires in ms, held for ms, holds, meta or ""}, ...}: at most 1000 of them}
local HOLDERS_MAX = 1000
local lease = lease_open(KEYS[1], ARGV[1])

lease_settle(lease)
lease_close(lease, ARGV[3])
local record, holders = lease.record, {}
if not record then
    return { 'looked', SEQ, 'free', 0, EPOCH, '', 0, holders }
end
local holds = record.many and many_of().list(lease, HOLDERS_MAX) or { record.live and record or nil }
for i, hold in ipairs(holds) do
    local v = redis.call('HMGET', hold.key, 'g', 'n', 'm')
    holders[i] = { hold.token, hold.holder, hold.left_ms, NOW - tonumber(v[1]), tonumber(v[2]), v[3] or '' }
end
local waiting = record.queue and redis.call('ZCARD', KEYS[1] .. ':q:' .. ARGV[1]) or 0
local state = #holders > 0 and 'held' or (record.delayed_until or 0) > NOW and 'delayed' or 'free'
return { 'looked', SEQ, state, record.token, record.token > 0 and record.epoch or EPOCH,
    state == 'held' and record.mode or '', waiting, holders }
