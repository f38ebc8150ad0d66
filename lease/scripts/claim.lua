-- claim.lua - take a grant that was handed on to this lease_id: from now on it is a hold, for its whole ttl.
-- One that was claimed before, in any way, is answered in the same way.
-- flags: allow-oom
-- batch: yes
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id   ARGV[4]  name of the granted hold
--   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"claimed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta or "",
--             mode, identity or nothing}
--            {"superseded", seq}: another request with this lease_id has claimed it
--            {"lost", seq, how it ended, or "unknown"}: it went on to the next, or back
--            {"not-yours", seq}: this lease_id is another's
local lease = lease_own()
if ARGV[6 + OWN_ARGS] and own_hold.is_anothers(lease, ARGV[3], ARGV[6]) then
    return { 'not-yours', SEQ }
end
local claimed = own_hold.claimed(lease, ARGV[3], ARGV[4])
return claimed or own_hold.lost(lease, ARGV[3], '', ARGV[5])
