-- leave.lua - take a waiter out of the line: he has waited long enough, or his client has gone.
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
-- use: lease/scripts/lib/mine.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id   ARGV[4]  name of the hold that it
--            would have been   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   ARGV[6]  "gone": a grant that was made meanwhile goes on to the next, also a claimed one that nobody was
--            told of; "late": it stands, to be claimed
--   returns  {"left", seq, more, token, holder or "", expires in ms}: it does not wait any more and has
--              nothing; who holds; more: "more" when hand_on.lua has something left to do
--            {"granted", seq}: it was handed on to him before ("late" only)
--            {"superseded", seq}: another request with this lease_id waits in his place, has claimed it, or
--              was told of it
local lease = lease_open(KEYS[1], ARGV[1])
local record, line, mine = lease.record, line_of(), mine_of()
local terms = record and record.queue and line.terms(lease, ARGV[3])
local hold = mine.hold(lease, ARGV[3])

if terms and terms.hold ~= ARGV[4] or hold and hold.hold ~= ARGV[4] then
    return { 'superseded', SEQ }
end
if hold and ARGV[6] ~= 'gone' then
    return { 'granted', SEQ }
end
if hold and not (hold.unclaimed or hold.untold) then
    return { 'superseded', SEQ }
end
if hold and record.many then
    many_of().end_one(lease, hold, 'returned', '')
elseif hold then
    hold_end(lease, 'returned', '')
elseif terms then
    line.out(lease, ARGV[3])
end
lease_settle(lease)
local more = lease_close(lease, ARGV[5])
if not lease.record then
    return { 'left', SEQ, more, 0, '', 0 }
end
local held = mine.held(lease)
return { 'left', SEQ, more, held[3], held[4], held[5] }
