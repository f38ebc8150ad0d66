-- look.lua - who holds the lease.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease
--   ARGV[1]  name of the lease   ARGV[2]  remember_ms
--   returns  {"held", seq, token, epoch, holder, expires in ms, held for ms, holds, meta or ""}
--            {"free", seq, last token, its epoch}: 0 and the stripe's epoch when nothing is known
local record = hold_read(KEYS[3])

if not record then
    return { 'free', SEQ, 0, EPOCH }
end
if not record.live then
    hold_settle(record, KEYS[2], ARGV[1], tonumber(ARGV[2]))
    return { 'free', SEQ, record.token, record.epoch }
end
local v = redis.call('HMGET', KEYS[3], 'g', 'n', 'm')
return { 'held', SEQ, record.token, record.epoch, record.holder, record.left_ms, NOW - tonumber(v[1]),
    tonumber(v[2]), v[3] or '' }
