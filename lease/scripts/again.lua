-- again.lua - ask for one who waits, when the reply was lost of a release that has perhaps granted it the
-- lease: claim that, or stand in the same place at another inbox. Never only look: that release may still run,
-- and must not find it where it stood.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id   ARGV[4]  name of the hold that it
--            would be   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  the inbox where it stands from now on   ARGV[7]  its wid there
--   ARGV[8]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"claimed", ...}, {"superseded", seq}, {"lost", seq, how}: as claim.lua; superseded also when another
--             request with this lease_id waits in its place
--            {"queued", seq}: it waits   {"not-yours", seq}: this lease_id is another's
local lease = lease_own()
if ARGV[8 + OWN_ARGS] and own_hold.is_anothers(lease, ARGV[3], ARGV[8]) then
    return { 'not-yours', SEQ }
end
local claimed = own_hold.claimed(lease, ARGV[3], ARGV[4])
local terms = lease.record.queue and line.terms(lease, ARGV[3])

if claimed or terms and terms.hold ~= ARGV[4] then
    return claimed or { 'superseded', SEQ }
end
if terms then
    line.move(lease, terms, ARGV[6], ARGV[7])
end
local lost = own_hold.lost(lease, ARGV[3], '', ARGV[5])
return terms and { 'queued', SEQ } or lost
