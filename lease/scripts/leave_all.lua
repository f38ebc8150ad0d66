-- leave_all.lua - take one who waits for several leases out of all lines: it has waited long enough, or its
-- client has gone.
-- flags: allow-oom
--   KEYS[1]  stripe   KEYS[2]  due index: of the first lease
--   ARGV[1]  name of the first lease   ARGV[2]  remember_ms   ARGV[3]  lease_id   ARGV[4]  name of the holds
--            that they would have been   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  "gone": grants that were made meanwhile go on to the next, also claimed ones that no answer
--            has named; "late": they stand, to be claimed
--   ARGV[7]  all of them as JSON: [[key of the stripe, name], ...]
--   ARGV[8]  who asks, of services with --access (lib/own_hold.lua)
--   returns  {"left", seq, more, token, holder or "", expires in ms, name}: it does not wait any more and has
--              nothing; who holds one of them, and which; more: "more" when handoff.lua has something left to
--              do on the first
--            {"granted", seq}: they were handed on to it before ("late" only)
--            {"superseded", seq}: another request with this lease_id waits in its place, or has claimed one
--            {"not-ours"}: as in acquire_all.lua   {"not-yours", seq}: this lease_id is another's
local leases, are_ours = several.open(cjson.decode(ARGV[7]))
if not are_ours then
    return { 'not-ours' }
end
if ARGV[8 + OWN_ARGS] and several.is_anothers(leases, ARGV[3], ARGV[8]) then
    return { 'not-yours', SEQ }
end
local holds, count, is_superseded = several.holds(leases, ARGV[3], ARGV[4])
local terms = line.terms(leases[1], ARGV[3])

if count == #leases and ARGV[6] ~= 'gone' then
    return { 'granted', SEQ }
end
if terms and terms.hold == ARGV[4] then
    several.out(terms)
end
several.give_back(leases, holds, count)
if is_superseded then
    several.close(leases, ARGV[5])
    return { 'superseded', SEQ }
end
local more, who = several.close(leases, ARGV[5]), leases[1]
for i = #leases, 1, -1 do
    who = leases[i].record.live and leases[i] or who
end
local held = lease_held(who)
return { 'left', SEQ, more, held[3], held[4], held[5], who.name }
