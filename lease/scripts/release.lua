-- release.lua - end the hold of this lease_id.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease
--   ARGV[1]  name of the lease   ARGV[2]  lease_id   ARGV[3]  remember_ms
--   ARGV[4]  name of the very hold that is meant, or "" for whichever it is
--   returns  {"released", seq, token}: now, or before and this is the same request again
--            {"lost", seq, how the hold ended, or "unknown"}: nothing was released
local record = hold_read(KEYS[3])
local mine = record and record.lease_id == ARGV[2] and (ARGV[4] == '' or ARGV[4] == record.hold)

if mine and record.live then
    hold_end(record, KEYS[2], ARGV[1], 'released', tonumber(ARGV[3]))
    return { 'released', SEQ, record.token }
end
if mine and record.ended == 'released' then
    return { 'released', SEQ, record.token }
end
hold_settle(record, KEYS[2], ARGV[1], tonumber(ARGV[3]))
return { 'lost', SEQ, mine and record.ended or 'unknown' }
