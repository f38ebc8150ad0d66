-- acquire.lua - lend the lease to one holder, if it is free.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  lease
--   ARGV[1]  name of the lease
--   ARGV[2]  lease_id
--   ARGV[3]  name of the new hold (12 to 16 characters)
--   ARGV[4]  holder, 1 to 128 bytes   ARGV[5]  ttl_ms, 100 to 86400000   ARGV[6]  meta as JSON, or ""
--   ARGV[7]  remember_ms
--   ARGV[8]  "grant", or "hold-off" when the store's settings forbid a new grant
--   returns  {"granted", seq, token, epoch}
--            {"replayed", seq, token, epoch, hold, holder, ttl_ms, expires in ms, holds, meta or ""}: it
--              holds already
--            {"held", seq, token, holder, expires in ms}: by another
--            {"over", seq, how}: this lease_id had the last hold, which is over
--            {"exhausted", seq}: no token is left in this stripe
--            {"ceiling", seq, ceiling}: would have been granted, but no higher token is recorded as reserved
--            {"held-off", seq}: would have been granted
local TOKEN_LAST = 999999999999999
local name, lease_id, ttl_ms, remember_ms = ARGV[1], ARGV[2], tonumber(ARGV[5]), tonumber(ARGV[7])
local record = hold_read(KEYS[3])

if record then
    local mine = record.lease_id == lease_id
    if record.live and mine then
        local ttl, holds, meta = hold_terms(record)
        return { 'replayed', SEQ, record.token, record.epoch, record.hold, record.holder, ttl, record.left_ms,
            holds, meta }
    end
    if record.live then
        return { 'held', SEQ, record.token, record.holder, record.left_ms }
    end
    if mine then
        hold_settle(record, KEYS[2], name, remember_ms)
        return { 'over', SEQ, record.ended }
    end
end
if COUNTER >= TOKEN_LAST or COUNTER >= CEILING or ARGV[8] ~= 'grant' then
    hold_settle(record, KEYS[2], name, remember_ms)
    if COUNTER >= TOKEN_LAST then
        return { 'exhausted', SEQ }
    end
    return ARGV[8] ~= 'grant' and { 'held-off', SEQ } or { 'ceiling', SEQ, CEILING }
end

touch()
local token = redis.call('HINCRBY', KEYS[1], 'counter', 1)
local deadline = whole(NOW + ttl_ms)
redis.call('HSET', KEYS[3], 's', 'held', 't', token, 'e', STRIPE[6], 'h', ARGV[3], 'i', lease_id,
    'd', deadline, 'o', ARGV[4], 'l', ARGV[5], 'g', whole(NOW), 'n', '1')
if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[3], 'm', ARGV[6])
elseif record then
    redis.call('HDEL', KEYS[3], 'm')
end
redis.call('ZADD', KEYS[2], deadline, name)
return { 'granted', SEQ, token, EPOCH }
