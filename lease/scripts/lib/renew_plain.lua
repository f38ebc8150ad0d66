-- renew_plain.lua - most renewals: of a hold with nothing special about it, and nobody waits. These are done
-- here, before the functions are made that others need (acquire_plain.lua).
local RECORD = hold_read(KEYS[3])

if RECORD and RECORD.live and not RECORD.more and RECORD.lease_id == ARGV[3]
    and (ARGV[5] == '' or ARGV[5] == RECORD.hold) then
    local v = redis.call('HMGET', KEYS[3], 'l', 'n', 'm')
    local ttl_ms = tonumber(ARGV[4]) or v[1] + 0
    local deadline = whole(NOW + ttl_ms)
    touch()
    redis.call('HSET', KEYS[3], 'd', deadline, 'l', whole(ttl_ms))
    redis.call('ZADD', KEYS[2], deadline, ARGV[1])
    return { 'renewed', SEQ, RECORD.token, RECORD.epoch, RECORD.hold, RECORD.holder, ttl_ms, ttl_ms, v[2] + 0,
        v[3] or '', 'exclusive' }
end
