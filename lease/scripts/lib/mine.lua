-- mine.lua - what an acquire is told when its lease_id is known already, or when it gets nothing,
-- and what its lease_id may do. Made when needed, as lib/many.lua.
local KEYS_MAX, SESSION_LEASES_MAX = 1000, 10000
local made_mine

local function mine_reads(mine)
    -- Whether this session may be used with this secret, for so many leases: nil, or the word for why not.
    function mine.session_wrong(more, count)
        local s = redis.call('HMGET', more.session, 's', 'd', 'e', 'c')
        if s[1] and s[4] ~= more.secret then
            return 'forbidden'
        end
        local lost = s[1] == 'live' and (tonumber(s[3]) < ALIVE and 'store-restarted'
            or NOW >= tonumber(s[2]) and 'expired')
        if lost then -- as session_read() does: what is told to be over never lives again
            local stripe, member = string.match(more.session, '^(pawl:%b{})(:s:.*)$')
            touch()
            local ended_at = lost == 'expired' and s[2] or whole(NOW)
            redis.call('HSET', more.session, 's', lost, 'u', ended_at, 'd', whole(NOW + REMEMBER_MS))
            redis.call('ZADD', stripe .. ':due', whole(NOW), member)
        end
        if lost or s[1] ~= 'live' then return 'session-lost' end
        local leases = redis.call('HLEN', (string.gsub(more.session, ':s:', ':y:', 1)))
        return leases + (count or 1) > SESSION_LEASES_MAX and 'session-full' or nil
    end

    -- The hold of this lease_id, if it is live: the record, or the one of many.
    function mine.hold(lease, lease_id)
        local record = lease.record
        if record and record.many then
            record = many_of().read(lease, lease_id)
        elseif record and record.lease_id ~= lease_id then
            record = nil
        end
        return record and record.live and record or nil
    end

    -- How the last hold ended, if it was this lease_id's; nil: it was not, or it never was a hold. One of
    -- many that is over may not have been taken out yet: it is now.
    function mine.ended(lease, lease_id)
        local record = lease.record
        if record and record.many then
            local hold = many_of().read(lease, lease_id)
            if hold and hold.lapsed then
                many_of().end_one(lease, hold, hold.ended, '')
            end
        end
        if not record or record.lease_id ~= lease_id then
            return nil
        end
        local how = record.many and record.last_ended or (not record.held and record.ended)
        return how ~= 'returned' and how or nil
    end

    -- What a release or a renewal that found no hold is told.
    function mine.ended_as(lease, lease_id, hold)
        local how, record = mine.ended(lease, lease_id), lease.record
        if not how or hold ~= '' and hold ~= (record.last_hold or record.hold) then
            return 'unknown'
        end
        return how
    end

end

local function mine_words(mine)
    -- Why nothing was granted: {"held", seq, token, holder or "", expires in ms}.
    function mine.held(lease)
        local record = lease.record
        if record.many then
            local hold = many_of().list(lease, 1)[1] or {}
            return { 'held', SEQ, record.token, hold.holder or '', hold.left_ms or 0 }
        end
        if record.live then
            return { 'held', SEQ, record.token, record.holder, record.left_ms }
        end
        return { 'held', SEQ, record.token, '', math.max(0, (record.delayed_until or 0) - NOW) }
    end

    -- What a holder is told of its own hold: ttl_ms, holds, meta or "".
    function mine.terms(hold)
        local v = redis.call('HMGET', hold.key, 'l', 'n', 'm')
        return tonumber(v[1]), tonumber(v[2]), v[3] or ''
    end

    function mine.told(word, hold, holds)
        local known = hold.terms or { mine.terms(hold) }
        local ttl, entered, meta = known[1], known[2], known[3]
        return { word, SEQ, hold.token, hold.epoch, hold.hold, hold.holder, ttl, hold.left_ms,
            holds or entered, meta, hold.mode }
    end

end

local function mine_times(mine)
    -- Somebody is told of this hold: from now on it is nobody's to give back (lease/scripts/leave.lua).
    function mine.heard(lease, hold)
        if hold.untold then
            lease_touch(lease)
            redis.call('HDEL', hold.key, 'c')
            hold.untold = false
        end
    end

    -- What else of the hold changes with it: field and value.
    local function set_deadline(lease, hold, deadline, field, value)
        hold.deadline, hold.left_ms = deadline, deadline - NOW
        redis.call('HSET', hold.key, 'd', whole(deadline), field, value)
        if lease.record.many then
            redis.call('ZADD', many_of().index(lease), whole(deadline), hold.lease_id)
            many_of().settle_times(lease)
        else
            redis.call('ZADD', lease.stripe .. ':due', whole(deadline), lease.name)
        end
        if lease.record.queue then
            line_of().set_alarm(lease)
        end
    end

    -- Sets the hold's time anew. A session's hold has the session's time, whatever is asked: who renews it
    -- gets 200 with that time, and nothing has changed; it is kept by renewing the session.
    function mine.extend(lease, hold, ttl_ms)
        if not hold.session then
            lease_touch(lease)
            set_deadline(lease, hold, NOW + ttl_ms, 'l', whole(ttl_ms))
        end
    end

    -- A grant that was handed on to it and that it has not claimed: from now on it is a hold, for its ttl.
    function mine.claim(lease, hold)
        lease_touch(lease)
        hold.unclaimed, hold.untold = false, true
        hold.terms = { mine.terms(hold) }
        local deadline = NOW + hold.terms[1]
        if hold.session then
            local list = string.gsub(hold.session, ':s:', ':y:', 1)
            local one = lease.name .. '/' .. hold.lease_id
            redis.call('HDEL', list, '/' .. one, lease.name)
            redis.call('HSET', list, one, string.sub(lease.stripe, 7, 8))
            deadline = tonumber(redis.call('HGET', hold.session, 'd'))
        end
        set_deadline(lease, hold, deadline, 'c', '')
    end
end

local function mine_keys(mine)
    local function keys_of(lease, lease_id)
        return lease.stripe .. ':k:' .. lease.name .. '/' .. lease_id
    end

    -- What an Idempotency-Key of this lease_id has done: {holds, digest}, or nil; one of a life before ALIVE
    -- is void, as its hold is.
    function mine.known(lease, lease_id, key)
        local known = redis.call('HGET', keys_of(lease, lease_id), key)
        if not known then
            return nil
        end
        local epoch, holds, digest = string.match(known, '^(%d+) (%d+) (.*)$')
        return tonumber(epoch) >= ALIVE and { holds = tonumber(holds), digest = digest } or nil
    end

    function mine.remember(lease, hold, key, holds, digest)
        lease_touch(lease)
        redis.call('HSET', hold.key, 'a', '1', 'y', '1')
        redis.call('HSET', keys_of(lease, hold.lease_id), key,
            STRIPE[6] .. ' ' .. whole(holds) .. ' ' .. digest)
        hold.keys, hold.more = '1', '1'
    end

    function mine.is_full(lease, lease_id)
        return redis.call('HLEN', keys_of(lease, lease_id)) >= KEYS_MAX
    end
end

local function mine_deeds(mine)
    function mine.enter(lease, hold, terms)
        local more, ttl_ms = terms.more, mine.terms(hold)
        lease_touch(lease)
        redis.call('HSET', hold.key, 'y', '1')
        local holds = redis.call('HINCRBY', hold.key, 'n', 1)
        mine.extend(lease, hold, more.own_ttl and tonumber(terms.ttl) or ttl_ms)
        if more.key then
            mine.remember(lease, hold, more.key, holds, more.digest)
        end
        return mine.told('entered', hold)
    end

    -- One of its holds, or all; a key that was not known before is kept.
    function mine.release(lease, hold, how_many, key, digest, may_grant)
        local _, holds = mine.terms(hold)
        if key ~= '' and mine.is_full(lease, hold.lease_id) then
            return { 'keys-full', SEQ }
        end
        holds = how_many == 'all' and 0 or holds - 1
        lease_touch(lease)
        if key ~= '' then
            mine.remember(lease, hold, key, holds, digest)
        end
        if holds > 0 then
            mine.heard(lease, hold)
            redis.call('HSET', hold.key, 'n', whole(holds))
            return { 'left', SEQ, holds }
        end
        if lease.record.many then
            many_of().end_one(lease, hold, 'released', '')
        else
            hold_end(lease, 'released', '')
        end
        local rest = lease_close(lease, may_grant)
        return { 'released', SEQ, rest, handed_desk, handed_word }
    end

    -- The grant was handed on to an earlier request of this lease_id, which gets it no more: the name of the
    -- hold tells the two apart.
    function mine.take_over(lease, hold, terms)
        local desk, wid = string.match(hold.unclaimed, '^(.*) (.*)$')
        lease_touch(lease)
        redis.call('PUBLISH', desk, 'superseded ' .. wid)
        if lease.record.many then
            redis.call('HDEL', many_of().names(lease), hold.hold)
            redis.call('HSET', many_of().names(lease), terms.hold, terms.lease_id)
        end
        if lease.record.hold == hold.hold then
            redis.call('HSET', lease.record.key, 'h', terms.hold)
        end
        redis.call('HSET', hold.key, 'h', terms.hold)
        hold.hold = terms.hold
        mine.claim(lease, hold)
        mine.heard(lease, hold)
    end
end

local function mine_answers(mine)
    -- It is told of the hold that it has; its key counts as used from now on.
    local function replay(lease, hold, terms, known)
        local more, word = terms.more or {}, hold.unclaimed and 'claimed' or 'replayed'
        local _, holds = mine.terms(hold)
        if hold.unclaimed then
            mine.take_over(lease, hold, terms)
        end
        mine.heard(lease, hold)
        if more.key and not known then
            mine.remember(lease, hold, more.key, holds, more.digest)
        end
        return mine.told(word, hold, known and known.holds)
    end

    -- The answer to a lease_id that holds or held the lease; nil when it does neither.
    function mine.answer(lease, terms)
        local hold, more = mine.hold(lease, terms.lease_id), terms.more or {}
        if not hold then
            local how = mine.ended(lease, terms.lease_id)
            return how and { 'over', SEQ, how } or nil
        end
        local known = more.key and mine.known(lease, terms.lease_id, more.key)
        if known and known.digest ~= more.digest then
            return { 'key-reused', SEQ }
        end
        if hold.mode ~= (more.mode or 'exclusive') or (hold.session or '') ~= (more.session or '')
            or more.mode == 'permits' and lease.record.permits ~= more.permits then
            return { 'differs', SEQ }
        end
        if more.key and not known and mine.is_full(lease, terms.lease_id) then
            return { 'keys-full', SEQ }
        end
        if hold.unclaimed or known or not more.reentrant then
            return replay(lease, hold, terms, known)
        end
        mine.heard(lease, hold)
        return mine.enter(lease, hold, terms)
    end
end

local function mine_of()
    if not made_mine then
        made_mine = {}
        mine_reads(made_mine)
        mine_words(made_mine)
        mine_times(made_mine)
        mine_keys(made_mine)
        mine_deeds(made_mine)
        mine_answers(made_mine)
    end
    return made_mine
end
