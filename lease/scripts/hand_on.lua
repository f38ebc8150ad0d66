-- hand_on.lua - look at a lease in whose line somebody waits: end what is over, and hand it on.
-- flags: allow-oom
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
--   returns  {"handed-on", seq, more}: "more" when it must be run again at once, else ""
local lease = lease_open(KEYS[1], ARGV[1])

lease_settle(lease)
local more = lease_close(lease, ARGV[3])
if not (lease.record and lease.record.queue) and redis.call('ZSCORE', ALARM, ARGV[1]) then
    touch()
    redis.call('ZREM', ALARM, ARGV[1])
end
return { 'handed-on', SEQ, more }
