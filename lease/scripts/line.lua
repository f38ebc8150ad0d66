-- line.lua - who waits for a lease.
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms
--   returns  {"line", seq, how many wait, {{holder, ...}, ...}: the first of them, as line.told() has it
--             (lib/line.lua), store time}
local lease = lease_own()
return { 'line', SEQ, lease.record.queue and redis.call('ZCARD', KEYS[1] .. ':q:' .. ARGV[1]) or 0,
    line.told(lease), NOW }
