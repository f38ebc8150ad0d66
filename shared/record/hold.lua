-- hold.lua - the record of one lease, and what it means that a hold is live.
--
--   s  "held", or how the last hold ended: "released" | "expired" | "store-restarted"
--   t  token of the present or last hold   e  its epoch   h  its public name   i  its lease_id
--   d  store time (ms): held: the deadline; over: when the lease is forgotten. The due index has the same
--     time.
--   k  the mark: highest token let through by the gateway   p  its epoch       (absent: none)
--   only while held:  o holder   l ttl_ms   g store time of the grant   n how often entered   m meta
--     (absent: none)
--
-- A hold is live while NOW < d and its epoch is not below ALIVE: a restart of the store that was not proven
-- complete ends all holds of before by raising ALIVE. Whoever finds a hold over ends it in that very step
-- (hold_settle), so that what was once told to be over never lives again, whatever the clock does. Marks of
-- before ALIVE are void: they may be too low.

-- The record, or nil when nothing is known. lapsed: it stands as held, but is over.
local function hold_read(key)
    local v = redis.call('HMGET', key, 's', 't', 'e', 'h', 'i', 'd', 'k', 'p', 'o')
    if not v[1] then
        return nil
    end
    local held, epoch, deadline = v[1] == 'held', tonumber(v[3]), tonumber(v[6])
    local of_before = epoch < ALIVE
    local lapsed = held and (of_before or NOW >= deadline)
    local mark_epoch = tonumber(v[8] or 0)
    return {
        key = key, live = held and not lapsed, lapsed = lapsed,
        ended = lapsed and (of_before and 'store-restarted' or 'expired') or v[1],
        token = tonumber(v[2]), epoch = epoch, hold = v[4], lease_id = v[5], left_ms = deadline - NOW,
        mark = mark_epoch >= ALIVE and tonumber(v[7] or 0) or 0, mark_epoch = mark_epoch, holder = v[9],
    }
end

-- Ends the hold: what is kept is kept for remember_ms.
local function hold_end(record, due, name, how, remember_ms)
    touch()
    local forget_at = whole(NOW + remember_ms)
    redis.call('HSET', record.key, 's', how, 'd', forget_at)
    redis.call('HDEL', record.key, 'o', 'l', 'g', 'n', 'm')
    redis.call('ZADD', due, forget_at, name)
end

-- Ends it if it is over.
local function hold_settle(record, due, name, remember_ms)
    if record and record.lapsed then
        hold_end(record, due, name, record.ended, remember_ms)
    end
end

-- What a holder is told of its own hold: ttl_ms, holds, meta or "".
local function hold_terms(record)
    local v = redis.call('HMGET', record.key, 'l', 'n', 'm')
    return tonumber(v[1]), tonumber(v[2]), v[3] or ''
end
