-- look.lua - who holds the lease, and how many wait for it.
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   returns  {"looked", seq, "free" | "held" | "delayed", last token or 0, its epoch or the stripe's,
--             "exclusive" | "shared" | "permits" | "", how many wait,
--             {{token, holder, expires in ms, held for ms, holds, meta or "", identity or
--             nothing}, ...}: at most 1000 of them}
local HOLDERS_MAX = 1000
local lease = lease_own()

lease_settle(lease)
lease_close(lease, ARGV[3])
local record, holders = lease.record, multi.holders(lease, HOLDERS_MAX)
local waiting = record.queue and redis.call('ZCARD', KEYS[1] .. ':q:' .. ARGV[1]) or 0
local state = #holders > 0 and 'held' or record.delayed_until > NOW and 'delayed' or 'free'
return { 'looked', SEQ, state, record.token, record.token > 0 and record.epoch or EPOCH,
    state == 'held' and record.mode or '', waiting, holders }
