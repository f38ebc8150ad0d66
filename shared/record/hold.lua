-- hold.lua - the record of one lease, and what it means that a hold is live.
--
--   pawl:{SS}:l:NAME, a hash:
--   s  "held", or how the last hold ended: "released" | "expired" | "forced" | "session" |
--      "store-restarted" | "returned" (a grant that nobody claimed: it never was a hold) | "none" (never
--      granted: somebody waits)
--   t  token of the last grant, 0: none   e  its epoch   h  its hold's public name
--   i  lease_id of the exclusive hold, or of the last one that ended
--   d  store time (ms): held: the deadline; over: when the lease is forgotten. The due index has the same
--      time, or an earlier one
--   k  the mark: highest token let through by the gateway   p  its epoch       (absent: none)
--   only while held exclusively:  o holder   l ttl_ms   g store time of the grant   n how often entered
--     m meta (absent: none)
--   y  there is one of these, too, or was, or n is above 1:
--     M  "shared" | "permits": the holds lie in keys of their own (below)   N  how many permits
--     r  how the hold of i ended, while others hold   u  its name, when it was one of many
--     c  not claimed yet: the grant was handed on to this desk, "KEY WID", and goes back at the deadline;
--        "": claimed, and perhaps nobody has been told so
--     x  key of its session
--     j  lock_delay_ms of the hold   b  store time until which nobody is granted
--     v  how it ended, as found by somebody who may not free the lease (hold_void)
--     w  somebody waits in line   a  it has Idempotency-Keys
--
--   Shared holds and permits: pawl:{SS}:h:NAME/LEASE_ID, a hash with the same letters, of that one hold;
--   pawl:{SS}:x:NAME, a zset, lease_id -> deadline (or an earlier time, with a session); pawl:{SS}:n:NAME, a
--   hash, hold -> lease_id and "#TOKEN" -> lease_id.
--
-- A hold is live while NOW < its deadline, with a session while NOW < the session's, and while its epoch is
-- not below ALIVE: a restart of the store that was not proven complete ends all holds of before by raising
-- ALIVE. Whoever finds a hold over says so in the store in that very step, so that what was once told to be
-- over never lives again, whatever the clock does. Marks of before ALIVE are void: they may be too low.

local TOKEN_LAST = 999999999999999

-- The fields behind y, and what they say. A hold of a session has the session's deadline (when that is over,
-- the time when it ended), but for a grant that is not claimed yet.
local function hold_read_more(record)
    local v = redis.call('HMGET', record.key, 'M', 'N', 'c', 'x', 'v', 'j', 'b', 'r', 'w', 'a', 'u')
    local how
    record.many, record.mode, record.permits = v[1] and true, v[1] or 'exclusive', tonumber(v[2] or 0)
    record.unclaimed, record.untold = v[3] ~= '' and v[3], v[3] == ''
    record.session, record.void = v[4], v[5]
    record.delay_ms, record.delayed_until = tonumber(v[6] or 0), tonumber(v[7] or 0)
    record.last_ended, record.queue, record.keys, record.last_hold = v[8], v[9], v[10], v[11]
    if record.session then
        local s = redis.call('HMGET', record.session, 's', 'd', 'e', 'u')
        record.session_over = not (s[1] == 'live' and NOW < tonumber(s[2]) and tonumber(s[3]) >= ALIVE)
        record.session_ended = s[1] ~= 'live'
        how = record.session_over and (s[1] == 'released' and 'released' or 'session') or nil
        if not record.unclaimed then
            record.deadline = tonumber(s[1] == 'live' and s[2] or s[4] or NOW)
        end
    end
    record.left_ms = record.deadline - NOW
    if record.many then
        record.live, record.lapsed, record.ended = record.held, false, 'held'
    elseif record.held then
        how = record.void or record.epoch < ALIVE and 'store-restarted' or how
            or record.left_ms <= 0 and 'expired' or nil
        how = how and record.unclaimed and 'returned' or how
        record.live, record.lapsed, record.ended = not how, how ~= nil, how or 'held'
    end
end

-- The record, or nil when nothing is known. lapsed: it stands as held, but is over; ended says how, also of
-- one that ended before. many: it is shared or has permits; then live says only that it stood so, and ended,
-- left_ms and lapsed nothing.
local function hold_read(key)
    local v = redis.call('HMGET', key, 's', 't', 'e', 'h', 'i', 'd', 'k', 'p', 'o', 'y')
    if not v[1] then
        return nil
    end
    local held, epoch, deadline = v[1] == 'held', tonumber(v[3]), tonumber(v[6])
    local how = held and (epoch < ALIVE and 'store-restarted' or NOW >= deadline and 'expired')
    local mark_epoch = tonumber(v[8] or 0)
    local record = {
        key = key, held = held, live = held and not how, lapsed = how and true or false, ended = how or v[1],
        token = tonumber(v[2]), epoch = epoch, hold = v[4], lease_id = v[5], deadline = deadline,
        left_ms = deadline - NOW, mark = mark_epoch >= ALIVE and tonumber(v[7] or 0) or 0,
        mark_epoch = mark_epoch, holder = v[9], mode = 'exclusive', more = v[10],
    }
    if v[10] then
        hold_read_more(record)
    end
    return record
end

-- Says for good that the hold is over, without freeing the lease: that is the lease service's.
local function hold_void(record)
    if record and record.lapsed and not record.void and not record.many then
        touch()
        redis.call('HSET', record.key, 'v', record.ended, 'y', '1')
        record.void = record.ended
    end
end

-- A hold of these terms (lease/scripts/lib/grant.lua) begins, and with it more fields and values; what only
-- it may have had before is gone.
local function hold_begin(key, terms, token, deadline, ...)
    redis.call('HSET', key, 's', 'held', 't', token, 'e', STRIPE[6], 'h', terms.hold, 'i', terms.lease_id,
        'd', deadline, 'o', terms.holder, 'l', terms.ttl, 'g', whole(NOW), 'n', '1', ...)
    if terms.meta ~= '' then
        redis.call('HSET', key, 'm', terms.meta)
    end
end

-- The exclusive hold is over, or the last of many; other fields go with it.
local function hold_stop(key, how, forget_at, ...)
    redis.call('HSET', key, 's', how, 'd', forget_at)
    redis.call('HDEL', key, 'o', 'l', 'g', 'n', 'm', ...)
end
