-- grant.lua - how a hold comes to be.
--
-- What is asked for, its terms: {lease_id, hold, holder, ttl, meta or "", identity or nil, more}, and of who waits since
-- and till (store times: since when it waits, and until when its request does); more is nil or
-- what the service has packed as JSON (lease/acquire_options.c): mode "shared" | "permits", permits, delay, session
-- (key of its record), key and digest (of the Idempotency-Key), desk (its inbox) and wid (who waits), wait (wait_ms), keep
-- (keep_place_ms), all (names of an all-or-none).
local CLAIM_MS = 3000

-- nil when so many tokens are left (1), else the word for what is missing. The first stripe's numbers are
-- known.
local function tokens_wanting(stripe, count)
    local counter, ceiling = COUNTER, CEILING
    if stripe ~= KEYS[1] then
        local others = call_table('stripes')
        local other = others[stripe]
        if not other then
            local v = redis.call('HMGET', stripe, 'counter', 'life')
            local _, _, _, _, its_ceiling = life_parts(v[2])
            other = { counter = tonumber(v[1]), ceiling = tonumber(its_ceiling) }
            other.is_ours = life_is_same(v[2]) and other.counter and other.counter >= 0 and other.ceiling
            others[stripe] = other
        end
        if not other.is_ours then
            return 'not-ours'
        end
        counter, ceiling = other.counter, other.ceiling
    end
    counter = counter + (count or 1)
    return counter > TOKEN_LAST and 'exhausted' or counter > ceiling and 'ceiling' or nil
end

-- The answer to an Idempotency-Key: how many holds there were after its request.
local function keys_put(lease, lease_id, key, holds, digest)
    redis.call('HSET', lease.stripe .. keys_member(lease, lease_id), key,
        EPOCH_TEXT .. ' ' .. holds .. ' ' .. digest)
end

-- What else hangs on a hold: its place in its session, its Idempotency-Key.
local function hold_hook(lease, hold, more)
    if hold.session then
        local list = session_holds_key(hold.session)
        redis.call('HSET', list, session_entry(lease, hold), string.sub(lease.stripe, 7, 8))
        if not hold.unclaimed then
            redis.call('HDEL', list, lease.name)
        end
    end
    if more.key then
        keys_put(lease, hold.lease_id, more.key, '1', more.digest)
    end
end

-- A hold of these terms begins, and what only the one before had is gone.
-- claim: "INBOX WID" of whom has yet to claim it, or nil. It is not written yet.
local function hold_begin(record, terms, token, deadline, claim)
    local more = terms.more or NO_MORE
    record.state = 'held'; record.token = token; record.epoch = EPOCH; record.hold = terms.hold
    record.lease_id = terms.lease_id; record.deadline = deadline; record.holder = terms.holder
    record.identity = terms.identity or ''; record.ttl = terms.ttl; record.granted = NOW; record.holds = 1
    record.meta = terms.meta; record.claim = claim or false; record.session = more.session or false
    record.delay_ms = more.delay or 0; record.keys = more.key and '1' or false; record.grant_id = ''
    record.void = false; record.last_ended = false; record.last_hold = false; record.delayed_until = 0
    if record.identity ~= '' then
        use_count(record.stripe, 'h', record.identity, '1')
    end
end

-- Of a lease that is free: how its last hold ended; nil: none is remembered.
local function ended_how(record)
    return record.lease_id ~= '' and record.state ~= 'returned' and record.state or nil
end

-- One more of many holds begins.
local function grant_one_of_many(lease, terms, token, deadline, claim, waited)
    local record, hold, more = lease.record, multi.read(lease, terms.lease_id), terms.more
    hold_begin(hold, terms, token, deadline, claim)
    hold.grant_id = waited
    hold_write(hold)
    redis.call('ZADD', multi.index(lease), whole(deadline), terms.lease_id)
    redis.call('HSET', multi.names(lease), terms.hold, terms.lease_id, multi.token_name(token),
        terms.lease_id)
    if not record.many then
        local how = claim and ended_how(record)
        record.many, record.permits, record.delayed_until = more.mode, more.permits or 0, 0
        record.last_ended, record.last_hold = how or false, how and (record.last_hold or record.hold) or false
        record.lease_id, record.identity = how and record.lease_id or '', how and record.identity or ''
    end
    record.state, record.token, record.epoch, record.hold = 'held', token, EPOCH, terms.hold
    multi.write(lease)
    return hold
end

-- Grants the lease, which must be free for these terms; the token. claim: "INBOX WID" of whom has yet to claim
-- it; the hold then goes back after CLAIM_MS. "": claimed, and perhaps nobody hears of it. nil: else.
local function grant(lease, terms, claim)
    local more, hold = terms.more or NO_MORE, lease.record
    terms.ttl = terms.ttl + 0
    local deadline = NOW + ((claim or '') ~= '' and CLAIM_MS or terms.ttl)
    if more.session then
        local s = redis.call('HMGET', more.session, 'd', 'l')
        local session_deadline = tonumber(s[1])
        terms.ttl = s[2] + 0
        deadline = claim and math.min(deadline, session_deadline) or session_deadline
    end
    terms.deadline = deadline
    touch(lease.stripe)
    local token = redis.call('HINCRBY', lease.stripe, 'counter', '1')
    if lease.stripe == KEYS[1] then
        COUNTER = token
    elseif call_table('stripes')[lease.stripe] then
        seldom.stripes[lease.stripe].counter = token
    end
    local waited = terms.since and '\31w' .. whole(NOW - terms.since) or ''
    if more.mode then
        hold = grant_one_of_many(lease, terms, token, deadline, claim, waited)
        history_add(lease.stripe, 'e', lease.name, 'granted', token, history_holder(hold),
            '\31t' .. whole(terms.ttl) .. waited .. '\31m' .. more.mode)
    else
        local before = claim and ended_how(hold) or false
        if before then -- that may go back: hold_end.lua
            before = before .. '\31' .. hold.lease_id .. '\31' .. hold.identity .. '\31'
                .. (hold.last_hold or hold.hold)
        end
        hold_begin(hold, terms, token, deadline, claim)
        hold.last_ended = before
        local id = history_tell(lease.stripe, lease.name, 'granted', token, history_holder(hold), waited,
            hold.ttl) or ''
        hold.grant_id = waited == '' and id or id .. waited
        hold_put(hold)
        if claim or hold.session then -- of one who holds at once nothing more is read
            hold_judge(hold)
        end
    end
    hold_hook(lease, hold, more)
    return token
end
