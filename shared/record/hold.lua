-- hold.lua - the record of one lease, and what it means that a hold is live.
--
--   s  "held", or how the last hold ended: "released" | "expired"
--   t  token of the present or last hold   e  its epoch   h  its public name   i  its lease_id
--   d  store time (ms): held: the deadline; over: when the lease is forgotten. The due index has the same
--     time.
--   k  the mark: highest token let through by the gateway   p  its epoch       (absent: none)
--   only while held:  o holder   l ttl_ms   g store time of the grant   n how often entered   m meta
--     (absent: none)
--
-- A hold is live while NOW < d. Whoever finds it over its deadline ends it in that very step (hold_settle),
-- so that what was once told to be over never lives again, whatever the clock does.

-- The record, or nil when nothing is known. lapsed: it stands as held, but its deadline has passed.
local function hold_read(key)
    local v = redis.call('HMGET', key, 's', 't', 'e', 'h', 'i', 'd', 'k', 'p', 'o')
    if not v[1] then
        return nil
    end
    local held, deadline = v[1] == 'held', tonumber(v[6])
    local lapsed = held and NOW >= deadline
    return {
        key = key, live = held and not lapsed, lapsed = lapsed, ended = lapsed and 'expired' or v[1],
        token = tonumber(v[2]), epoch = tonumber(v[3]), hold = v[4], lease_id = v[5],
        left_ms = deadline - NOW, mark = tonumber(v[7] or 0), mark_epoch = tonumber(v[8] or 0), holder = v[9],
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

-- Ends it if its deadline has passed.
local function hold_settle(record, due, name, remember_ms)
    if record and record.lapsed then
        hold_end(record, due, name, 'expired', remember_ms)
    end
end

-- What a holder is told of its own hold: ttl_ms, holds, meta or "".
local function hold_terms(record)
    local v = redis.call('HMGET', record.key, 'l', 'n', 'm')
    return tonumber(v[1]), tonumber(v[2]), v[3] or ''
end
