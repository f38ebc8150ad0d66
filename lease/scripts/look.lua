-- look.lua - who holds the lease, and how many wait for it.
-- flags: allow-oom
-- reads: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  "grant" or "hold-off", as in acquire.lua
--   returns  {"looked", seq, "free" | "held" | "delayed", last token or 0, its epoch or the stripe's,
--             "exclusive" | "shared" | "permits" | "", how many wait, {holder, ...}: at most 1000 of them, and so
--             on, as multi.tell() has it (lib/multi_hold.lua), store time,
--             {{holder, identity or "", mode, since when (store time), until when or 0}, ...}: the first in line}
local HOLDERS_MAX = 1000
local lease = lease_own()

lease_settle(lease)
lease_close(lease, ARGV[3])
local reply = multi.tell({ 'looked', SEQ }, lease, multi.holders(lease, HOLDERS_MAX),
    lease.record.delayed_until)
reply[12], reply[13] = NOW, line.told(lease)
return reply
