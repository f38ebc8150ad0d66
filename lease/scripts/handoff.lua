-- handoff.lua - look at a lease in whose line somebody waits: end what is over, and hand it on.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   returns  {"handed-on", seq, more}: "more" when it must be run again at once, else ""
local lease = lease_own()

lease_settle(lease)
local next_ms = lease.record.queue and line.forget(lease)
local more = lease_close(lease, ARGV[3])
if next_ms and lease.record.queue then
    line.set_alarm(lease, next_ms) -- of a place that is kept: it is not counted any longer
end
if not lease.record.queue and redis.call('ZSCORE', ALARM, ARGV[1]) then
    touch()
    redis.call('ZREM', ALARM, ARGV[1])
end
return { 'handed-on', SEQ, more }
