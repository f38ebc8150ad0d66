-- claim.lua - take a grant that was handed on to this lease_id: from now on it is a hold, for its whole ttl.
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
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms   ARGV[3]  lease_id   ARGV[4]  name of the granted hold
--   ARGV[5]  "grant" or "hold-off", as in acquire.lua
--   returns  {"claimed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta or "",
--             mode}
--            {"superseded", seq}: another request with this lease_id has claimed it, or waits in its place
--            {"lost", seq, how it ended, or "unknown"}: it went on to the next, or back
local lease = lease_open(KEYS[1], ARGV[1])
local hold = mine_of().hold(lease, ARGV[3])

if hold and hold.unclaimed and hold.hold == ARGV[4] then
    mine_of().claim(lease, hold)
    return mine_of().told('claimed', hold)
end
if hold then
    return { 'superseded', SEQ }
end
lease_settle(lease)
local how = mine_of().ended(lease, ARGV[3]) or 'unknown' -- may end one of many: before it is handed on
lease_close(lease, ARGV[5])
return { 'lost', SEQ, how }
