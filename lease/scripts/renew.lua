-- renew.lua - set the ttl anew, longer or shorter, for the lease_id that holds.
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id
--   ARGV[4]  ttl_ms, or "" for the one of before   ARGV[5]  name of the very hold that is meant, or "": any
--   ARGV[6]  "grant" or "hold-off", as in acquire.lua
--   ARGV[7]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"renewed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds,
--             meta or "", mode, identity or nothing}
--            {"lost", seq, how the hold ended, or "unknown"}: nothing was renewed
--            {"not-yours", seq}: this lease_id is another's
local lease = lease_own()
if ARGV[7 + OWN_ARGS] and own_hold.is_anothers(lease, ARGV[3], ARGV[7]) then
    return { 'not-yours', SEQ }
end
local hold = own_hold.find(lease, ARGV[3])
if hold and not hold.unclaimed and (ARGV[5] == '' or ARGV[5] == hold.hold) then
    own_hold.answered(hold)
    own_hold.extend(lease, hold, tonumber(ARGV[4]) or hold.ttl)
    return own_hold.reply('renewed', hold)
end
return own_hold.lost(lease, ARGV[3], ARGV[5], ARGV[6])
