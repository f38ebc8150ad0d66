-- session.lua - one keep-alive for many leases.
--
--   pawl:{SS}:s:ID  hash  s "live", or how it ended: "expired" | "released" | "store-restarted"
--                         c digest of its secret   o holder   m meta (absent: none)   l ttl_ms
--                         g store time when it was opened   i identity of who opened it (absent: nobody)
--                         e its epoch   d live: deadline; over: when it is forgotten   u over: when it ended
--   pawl:{SS}:y:ID  hash  NAME/LEASE_ID -> stripe of the lease, two digits: held through it
--                         /NAME/LEASE_ID -> the same: handed on to a waiter who has not claimed it yet
--                         NAME -> how: it was lost otherwise, and is named until it is acquired anew
--
-- A session is live while NOW < d and its epoch is not below ALIVE. A hold of it asks this record in every
-- script that reads it (shared/member/scripts/lib/hold.lua), so the end of a session is the end of its holds
-- in that very step; to free and hand on the leases, which may be thousands, is work for later, done in
-- steps.
--
-- A hold's own times, and the alarms of those who wait, are set by the session's deadline of the time when it
-- was granted; a renewal does not touch them. When they come due, who looks finds the hold live and sets
-- them anew: that is why a renewal costs the same however many leases there are.
local SESSION_LEASES_MAX = 10000

-- Says for good that it is over. It comes due at once: the sweep frees what nobody else does.
local function session_end(key, how, ended_at)
    local stripe, member = string.match(key, '^(pawl:%b{})(:s:.*)$')
    local s = redis.call('HMGET', key, 'i', 'e')
    if s[1] and tonumber(s[2]) >= ALIVE then
        use_count(stripe, 's', s[1], '-1')
    end
    touch()
    redis.call('HSET', key, 's', how, 'u', whole(ended_at), 'd', whole(NOW + REMEMBER_MS))
    redis.call('ZADD', stripe .. ':due', whole(NOW), member)
end

-- The session, or nil. One that is found over is ended in that very step, so that
-- what an answer once called over never lives again, whatever the clock does.
local function session_read(key)
    local s = redis.call('HMGET', key, 's', 'd', 'e', 'c', 'l')
    if not s[1] then
        return nil
    end
    local session = { how = s[1], deadline = tonumber(s[2]), secret = s[4], ttl_ms = tonumber(s[5]) }
    if s[1] == 'live' then
        local lost = session_lost(s)
        session.live = not lost
        if lost then
            session_end(key, lost, lost == 'expired' and session.deadline or NOW)
            session.how, session.deadline = lost, NOW + REMEMBER_MS
        end
    end
    return session
end

-- The reply with a session that lives: {word, seq, ttl_ms, expires in ms, for how long it lives, holder,
-- meta or "", {name and lease_id of each hold, and names of those that were lost, as in y}, identity or nothing}.
local function session_reply(word, key, session, asker)
    local v = redis.call('HMGET', key, 'g', 'o', 'm')
    return { word, SEQ, session.ttl_ms, session.deadline - NOW, NOW - tonumber(v[1]), v[2], v[3] or '',
        redis.call('HKEYS', session_holds_key(key)), asker and redis.call('HGET', key, 'i') or nil }
end

-- How many leases it holds, and how many it lost otherwise.
local function session_count(key)
    local names, held, lost = redis.call('HKEYS', session_holds_key(key)), 0, 0
    for _, name in ipairs(names) do
        local slash = string.find(name, '/', 1, true)
        held, lost = held + (slash and slash > 1 and 1 or 0), lost + (slash and 0 or 1)
    end
    return held, lost, #names
end

-- Whether the session is another's than who asks (own_hold.lua).
local function session_is_anothers(key, asker)
    return asker and is_foreign(redis.call('HGET', key, 'i') or '', asker)
end

-- Whether this session may be used with this secret, for so many leases: nil, or the word for why not.
local function session_wrong(more, asker, count)
    local session = session_read(more.session)
    if session and (session.secret ~= more.secret or session_is_anothers(more.session, asker)) then
        return 'not-yours'
    elseif not (session and session.live) then
        return 'session-lost'
    end
    local leases = redis.call('HLEN', session_holds_key(more.session))
    return leases + (count or 1) > SESSION_LEASES_MAX and 'session-full' or nil
end

-- The hold of this lease_id, which its session's end has ended, is taken from the lease, and the lease goes
-- on to who waits.
local function session_leave_one(stripe, name, lease_id, may_grant)
    local lease = lease_open(stripe, name)
    own_hold.ended(lease, lease_id)
    lease_settle(lease)
    lease_close(lease, may_grant)
end

-- At most so many of them; how many.
local function session_leave(key, most, may_grant)
    local list = session_holds_key(key)
    local flat = redis.call('HRANDFIELD', list, most, 'WITHVALUES')
    for i = 1, #flat, 2 do
        local name, lease_id = string.match(flat[i], '^/?([^/]+)/(.+)$')
        if name then
            lease_try(session_leave_one, 'pawl:{' .. flat[i + 1] .. '}', name, lease_id, may_grant)
        end
    end
    for i = 1, #flat, 2 do
        touch()
        redis.call('HDEL', list, flat[i])
    end
    return #flat / 2
end
