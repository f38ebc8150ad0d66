-- renew.lua - set the ttl anew, longer or shorter, for the lease_id that holds.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease
--   ARGV[1]  name of the lease   ARGV[2]  lease_id   ARGV[3]  ttl_ms, or "" for the one of before
--   ARGV[4]  remember_ms         ARGV[5]  name of the very hold that is meant, or "" for whichever it is
--   returns  {"renewed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta or ""}
--            {"lost", seq, how the hold ended, or "unknown"}: nothing was renewed
local record = hold_read(KEYS[3])
local mine = record and record.lease_id == ARGV[2] and (ARGV[5] == '' or ARGV[5] == record.hold)

if not (mine and record.live) then
    hold_settle(record, KEYS[2], ARGV[1], tonumber(ARGV[4]))
    return { 'lost', SEQ, mine and record.ended or 'unknown' }
end

local ttl_ms, holds, meta = hold_terms(record)
ttl_ms = tonumber(ARGV[3]) or ttl_ms
touch()
local deadline = whole(NOW + ttl_ms)
redis.call('HSET', KEYS[3], 'd', deadline, 'l', whole(ttl_ms))
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
return { 'renewed', SEQ, record.token, record.epoch, record.hold, record.holder, ttl_ms, ttl_ms, holds, meta }
