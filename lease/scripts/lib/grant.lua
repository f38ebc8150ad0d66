-- grant.lua - how a hold comes to be.
--
-- What is asked for, its terms: {lease_id, hold, holder, ttl, meta or "", more}; more is nil or what the
-- service has packed as JSON (lease/acquire_options.c): mode "shared" | "permits", permits, delay, session (key of its
-- record), key and digest (of the Idempotency-Key), desk and wid (who waits), keep (keep_place_ms), all (names of
-- an all-or-none).
local CLAIM_MS = 3000

-- nil when so many tokens are left (1), else the word for what is missing. The first stripe's numbers are
-- known.
local function tokens_wanting(stripe, count)
    local counter, ceiling = COUNTER, CEILING
    if stripe ~= KEYS[1] then
        other_stripes = other_stripes or {}
        local other = other_stripes[stripe]
        if not other then
            local v = redis.call('HMGET', stripe, 'counter', 'life')
            local _, _, _, _, its_ceiling = life_parts(v[2])
            other = { counter = tonumber(v[1]), ceiling = tonumber(its_ceiling) }
            other.is_ours = life_is_same(v[2]) and other.counter and other.counter >= 0 and other.ceiling
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

-- What else hangs on a hold: its place in a session, its Idempotency-Key.
local function hold_hook(lease, hold, more)
    if hold.session then
        local list = string.gsub(hold.session, ':s:', ':y:', 1)
        redis.call('HSET', list, (hold.unclaimed and '/' or '') .. lease.name .. '/' .. hold.lease_id,
            string.sub(lease.stripe, 7, 8))
        if not hold.unclaimed then
            redis.call('HDEL', list, lease.name)
        end
    end
    if more.key then
        redis.call('HSET', lease.stripe .. ':k:' .. lease.name .. '/' .. hold.lease_id, more.key,
            EPOCH_TEXT .. ' 1 ' .. more.digest)
    end
end

-- Grants the lease, which must be free for these terms; the token. claim: "DESK WID" of whom has yet to claim
-- it; the hold then goes back after CLAIM_MS. "": claimed, and perhaps nobody hears of it. nil: else.
local function grant(lease, terms, claim)
    local more, hold = terms.more or NO_MORE, lease.record
    local deadline = NOW + ((claim or '') ~= '' and CLAIM_MS or terms.ttl + 0)
    if more.session then
        local s = redis.call('HMGET', more.session, 'd', 'l')
        local session_deadline = tonumber(s[1])
        terms.ttl = s[2]
        deadline = claim and math.min(deadline, session_deadline) or session_deadline
    end
    terms.deadline = deadline
    touch(lease.stripe)
    local token = redis.call('HINCRBY', lease.stripe, 'counter', '1')
    if lease.stripe == KEYS[1] then
        COUNTER = token
    elseif other_stripes and other_stripes[lease.stripe] then
        other_stripes[lease.stripe].counter = token
    end
    if more.mode then
        hold = many.begin(lease, terms, token, deadline, claim)
        history_add(lease.stripe, 'e', lease.name, 'granted', token, terms.holder, '')
    else
        hold_begin(hold, terms, token, deadline, claim)
        hold.grant_id = history_tell(lease.stripe, lease.name, 'granted', token, terms.holder, '') or ''
        hold_put(hold)
        if claim or hold.session then -- of one who holds at once nothing more is read
            hold_judge(hold)
        end
    end
    hold_hook(lease, hold, more)
    return token
end
