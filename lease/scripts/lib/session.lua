-- session.lua - one keep-alive for many leases.
--
--   pawl:{SS}:s:ID  hash  s "live", or how it ended: "expired" | "released" | "store-restarted"
--                         c digest of its secret   o holder   m meta (absent: none)   l ttl_ms
--                         g store time when it was opened
--                         e its epoch   d live: deadline; over: when it is forgotten   u over: when it ended
--   pawl:{SS}:y:ID  hash  NAME/LEASE_ID -> stripe of the lease, two digits: held through it
--                         /NAME/LEASE_ID -> the same: handed on to a waiter who has not claimed it yet
--                         NAME -> how: it was lost otherwise, and is named until it is acquired anew
--
-- A session is live while NOW < d and its epoch is not below ALIVE. A hold of it asks this record in every
-- script that reads it (shared/member/scripts/lib/hold.lua), so the end of a session is the end of its holds in that very
-- step; to free and hand on the leases, which may be thousands, is work for later, done in steps.
--
-- A hold's own times, and the alarms of those who wait, are set by the session's deadline of the time when it
-- was granted; a renewal does not touch them. When they come due, whoever looks finds the hold live and sets
-- them anew: that is why a renewal costs the same however many leases there are.

local function session_holds_key(key)
    return (string.gsub(key, ':s:', ':y:', 1))
end

-- Says for good that it is over. It comes due at once: the sweep frees what nobody else does.
local function session_end(key, member, how, ended_at)
    touch()
    redis.call('HSET', key, 's', how, 'u', whole(ended_at), 'd', whole(NOW + REMEMBER_MS))
    redis.call('ZADD', KEYS[2], whole(NOW), member)
end

-- The session of this script's stripe, or nil. One that is found over is ended in that very step, so that
-- what was once told to be over never lives again, whatever the clock does.
local function session_read(key, member)
    local v = redis.call('HMGET', key, 's', 'c', 'l', 'd', 'e')
    if not v[1] then
        return nil
    end
    local session = { how = v[1], secret = v[2], ttl_ms = tonumber(v[3]), deadline = tonumber(v[4]) }
    if v[1] == 'live' then
        local lost = tonumber(v[5]) < ALIVE and 'store-restarted' or NOW >= session.deadline and 'expired'
        session.live = not lost
        if lost then
            session_end(key, member, lost, lost == 'expired' and session.deadline or NOW)
            session.how, session.deadline = lost, NOW + REMEMBER_MS
        end
    end
    return session
end

-- What is told of a session that lives: {word, seq, ttl_ms, expires in ms, for how long it lives, holder,
-- meta or "", {name and lease_id of each hold, and names of those that were lost, as in y}}.
local function session_reply(word, key, session)
    local v = redis.call('HMGET', key, 'g', 'o', 'm')
    return { word, SEQ, session.ttl_ms, session.deadline - NOW, NOW - tonumber(v[1]), v[2], v[3] or '',
        redis.call('HKEYS', session_holds_key(key)) }
end
