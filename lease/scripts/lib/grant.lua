-- grant.lua - how a hold comes to be.
--
-- What is asked for, its terms: {lease_id, hold, holder, ttl, meta or "", more}; more is nil or what the
-- service has packed as JSON (lease/terms.h): mode "shared" | "permits", permits, delay, session (key of its
-- record), key and digest (of the Idempotency-Key), desk and wid (who waits), all (names of an all-or-none).
local CLAIM_MS = 3000

local other_stripes = {}

-- nil when so many tokens are left (1), else the word for what is missing. The first stripe's numbers are
-- known.
local function tokens_wanting(stripe, count)
    local counter, ceiling = COUNTER, CEILING
    if stripe ~= KEYS[1] then
        local other = other_stripes[stripe]
        if not other then
            local v = redis.call('HMGET', stripe, 'counter', 'ceiling', 'epoch', 'id')
            other = { counter = tonumber(v[1]), ceiling = tonumber(v[2]) }
            other.is_ours = v[4] == STRIPE[7] and v[3] == STRIPE[6] and other.counter and other.counter >= 0
                and other.ceiling
            other_stripes[stripe] = other
        end
        if not other.is_ours then
            return 'not-ours'
        end
        counter, ceiling = other.counter, other.ceiling
    end
    counter = counter + (count or 1)
    return counter > TOKEN_LAST and 'exhausted' or counter > ceiling and 'ceiling' or nil
end

-- The parts of a grant that few ask for. unclaimed: "DESK WID" of whom has yet to claim it, or nil.
local function grant_more(lease, hash, terms, unclaimed)
    local more = terms.more or {}
    redis.call('HSET', hash, 'y', '1')
    if more.delay then
        redis.call('HSET', hash, 'j', more.delay)
    end
    if more.session then
        local list = string.gsub(more.session, ':s:', ':y:', 1)
        redis.call('HSET', hash, 'x', more.session)
        redis.call('HSET', list, (unclaimed and '/' or '') .. lease.name .. '/' .. terms.lease_id,
            string.sub(lease.stripe, 7, 8))
        if not unclaimed then
            redis.call('HDEL', list, lease.name)
        end
    end
    if more.key then
        redis.call('HSET', hash, 'a', '1')
        redis.call('HSET', lease.stripe .. ':k:' .. lease.name .. '/' .. terms.lease_id, more.key,
            STRIPE[6] .. ' 1 ' .. more.digest)
    end
end

local function grant_many(lease, terms, token, deadline, ...)
    local prefix, record = lease.stripe, lease.record
    local hash, more = prefix .. ':h:' .. lease.name .. '/' .. terms.lease_id, terms.more
    hold_begin(hash, terms, token, deadline, ...)
    redis.call('ZADD', prefix .. ':x:' .. lease.name, deadline, terms.lease_id)
    redis.call('HSET', prefix .. ':n:' .. lease.name, terms.hold, terms.lease_id,
        many_of().token_name(token), terms.lease_id)
    if not (record and record.many) then
        redis.call('HSET', prefix .. ':l:' .. lease.name, 's', 'held', 'i', '', 'M', more.mode, 'N',
            more.permits or 0, 'y', '1')
    end
    redis.call('HSET', prefix .. ':l:' .. lease.name, 't', token, 'e', STRIPE[6], 'h', terms.hold)
    return hash
end

local function grant_one(lease, ...)
    local hash = lease.stripe .. ':l:' .. lease.name
    hold_begin(hash, ...)
    return hash
end

-- Grants the lease, which must be free for these terms; the token. unclaimed: as above; the hold then goes
-- back after CLAIM_MS.
local function grant(lease, terms, unclaimed)
    local more = terms.more
    local deadline = NOW + (unclaimed and CLAIM_MS or tonumber(terms.ttl))
    if more and more.session then
        local s = redis.call('HMGET', more.session, 'd', 'l')
        local session_deadline = tonumber(s[1])
        terms.ttl = s[2]
        deadline = unclaimed and math.min(deadline, session_deadline) or session_deadline
    end
    terms.deadline = deadline
    local seq = lease_touch(lease)
    local token = redis.call('HINCRBY', lease.stripe, 'counter', 1)
    if lease.stripe == KEYS[1] then
        COUNTER = token
    elseif other_stripes[lease.stripe] then
        other_stripes[lease.stripe].counter = token
    end
    local hash = lease.stripe .. ':l:' .. lease.name
    local record, is_many = lease.record, more and more.mode
    if record and not record.many and (record.last_hold or (record.delayed_until or 0) > 0) then
        redis.call('HDEL', hash, 'b', 'u')
    end
    local begin = is_many and grant_many or grant_one
    if unclaimed then
        hash = begin(lease, terms, token, whole(deadline), 'y', '1', 'c', unclaimed)
    else
        hash = begin(lease, terms, token, whole(deadline))
    end
    if more and (more.delay or more.session or more.key) then
        grant_more(lease, hash, terms, unclaimed)
    end
    if is_many then
        many_of().settle_times({ stripe = lease.stripe, name = lease.name,
            record = { key = lease.stripe .. ':l:' .. lease.name } })
    else
        redis.call('ZADD', lease.stripe .. ':due', whole(deadline), lease.name)
    end
    history_add(lease.stripe, seq, 'e', lease.name, 'granted', token, terms.holder, '')
    return token
end
