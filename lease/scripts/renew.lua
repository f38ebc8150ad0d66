-- renew.lua - set the ttl anew, longer or shorter, for the lease_id that holds.
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id
--   ARGV[4]  ttl_ms, or "" for the one of before   ARGV[5]  name of the very hold that is meant, or "": any
--   ARGV[6]  "grant" or "hold-off", as in acquire.lua
--   returns  {"renewed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds,
--             meta or "", mode}
--            {"lost", seq, how the hold ended, or "unknown"}: nothing was renewed
local lease = lease_own()
local hold = own_hold.find(lease, ARGV[3])
if hold and not hold.unclaimed and (ARGV[5] == '' or ARGV[5] == hold.hold) then
    own_hold.answered(hold)
    own_hold.extend(lease, hold, tonumber(ARGV[4]) or hold.ttl)
    return own_hold.reply('renewed', hold)
end
return own_hold.lost(lease, ARGV[3], ARGV[5], ARGV[6])
