-- leave.lua - take a waiter out of the line: it has waited long enough, or its client has gone.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id   ARGV[4]  name of the hold that it
--            would have been   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  "gone": a grant that was made meanwhile goes on to the next, also a claimed one that no
--            answer has named; "late": it stands, to be claimed
--   ARGV[7]  keep_place_ms of its request; "0": it asked for none, or may not have the lease any more
--   ARGV[8]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"left", seq, more, token, holder or "", expires in ms, "", kept}: it does not wait any more and has
--              nothing; who holds; more: "more" when handoff.lua has something left to do; kept: for how long
--              its lease_id finds its place again
--            {"granted", seq}: it was handed on to it before ("late" only)
--            {"superseded", seq}: another request with this lease_id waits in its place, has claimed it, or
--              had an answer with it
--            {"not-yours", seq}: this lease_id is another's
local lease = lease_own()
if ARGV[8 + OWN_ARGS] and own_hold.is_anothers(lease, ARGV[3], ARGV[8]) then
    return { 'not-yours', SEQ }
end
local record = lease.record
local terms = record.queue and line.terms(lease, ARGV[3])
local hold = own_hold.find(lease, ARGV[3])

if terms and terms.hold ~= ARGV[4] or hold and hold.hold ~= ARGV[4] then
    return { 'superseded', SEQ }
end
if hold and ARGV[6] ~= 'gone' then
    return { 'granted', SEQ }
end
if hold and not (hold.unclaimed or hold.unanswered) then
    return { 'superseded', SEQ }
end
local kept = terms and ARGV[7] ~= '0' and line.keep(lease, terms)
if hold and ARGV[7] ~= '0' then
    own_hold.offer(lease, hold)
elseif hold then
    lease_end_hold(lease, hold, 'returned', '')
elseif terms and not kept then
    line.out(lease, ARGV[3], terms)
end
lease_settle(lease)
local more = lease_close(lease, ARGV[5])
local held = lease_held(lease)
return { 'left', SEQ, more, held[3], held[4], held[5], '', kept and terms.more.keep or 0 }
