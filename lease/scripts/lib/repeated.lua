-- repeated.lua - what a lease_id gets that asks again: its Idempotency-Keys, a grant that was handed on to
-- it, the hold that it has.
local KEYS_MAX = 1000
local own_keys = {}

-- The keys of a hold that is over, as the due index of this script's stripe names them, are forgotten; false:
-- the lease_id holds the lease again, and they are its.
function own_keys.forget(member)
    local name, lease_id = string.match(member, '^:k:([^/]+)/(.+)$')
    local lease = lease_open(KEYS[1], name)
    local is_held = lease.record.held and lease.record.lease_id == lease_id
    if lease.record.many then
        is_held = multi.read(lease, lease_id).text
    end
    if is_held then
        return false
    end
    touch()
    redis.call('DEL', KEYS[1] .. member)
    redis.call('ZREM', KEYS[2], member)
    return true
end

-- What an Idempotency-Key of this lease_id has done: {holds, digest}, or nil; one of an epoch before ALIVE
-- is void, as its hold is.
function own_keys.known(lease, lease_id, key)
    local known = redis.call('HGET', lease.stripe .. keys_member(lease, lease_id), key)
    if not known then
        return nil
    end
    local epoch, holds, digest = string.match(known, '^(%d+) (%d+) (.*)$')
    return tonumber(epoch) >= ALIVE and { holds = tonumber(holds), digest = digest } or nil
end

function own_keys.remember(lease, hold, key, holds, digest)
    touch(lease.stripe)
    keys_put(lease, hold.lease_id, key, whole(holds), digest)
    hold.keys = '1'
    hold_write(hold)
end

function own_keys.is_full(lease, lease_id)
    return redis.call('HLEN', lease.stripe .. keys_member(lease, lease_id)) >= KEYS_MAX
end

-- A session's hold is named in another way until it is claimed (session.lua): "/" in front.
local function session_names(lease, hold, before, now)
    local list, one = session_holds_key(hold.session), lease.name .. '/' .. hold.lease_id
    redis.call('HDEL', list, before .. one, lease.name)
    redis.call('HSET', list, now .. one, string.sub(lease.stripe, 7, 8))
end

-- A grant that was handed on to it and that it has not claimed: from now on it is a hold, for its ttl.
function own_hold.claim(lease, hold)
    local deadline = NOW + hold.ttl
    hold.claim = ''
    if hold.session then
        session_names(lease, hold, '/', '')
        deadline = tonumber(redis.call('HGET', hold.session, 'd'))
    end
    set_deadline(lease, hold, deadline)
    hold_judge(hold)
end

-- No answer named it, and its client, which has left, may come back: it is offered to its lease_id, at no
-- inbox.
function own_hold.offer(lease, hold)
    if hold.unanswered and hold.session then
        session_names(lease, hold, '', '/')
    end
    if hold.unanswered then
        hold.claim = lease.stripe .. ':d:- 0'
        set_deadline(lease, hold, NOW + CLAIM_MS)
        hold_judge(hold)
    end
end

-- The answer to a claim of the grant with this name: it is claimed, now or before. nil: this lease_id has
-- nothing.
function own_hold.claimed(lease, lease_id, name)
    local hold = own_hold.find(lease, lease_id)
    if hold and hold.hold ~= name then
        return { 'superseded', SEQ }
    end
    if hold and hold.unclaimed then
        own_hold.claim(lease, hold)
    end
    return hold and own_hold.reply('claimed', hold)
end

-- The grant was handed on to an earlier request of this lease_id, which gets it no more: the name of the
-- hold tells the two apart.
function own_hold.take_over(lease, hold, terms)
    local inbox, wid = string.match(hold.unclaimed, '^(.*) (.*)$')
    touch(lease.stripe)
    redis.call('PUBLISH', inbox, 'superseded ' .. wid)
    if lease.record.many then
        redis.call('HDEL', multi.names(lease), hold.hold)
        redis.call('HSET', multi.names(lease), terms.hold, terms.lease_id)
    end
    if lease.record.hold == hold.hold then
        lease.record.hold = terms.hold
    end
    hold.hold = terms.hold
    own_hold.claim(lease, hold)
end

function own_hold.enter(lease, hold, terms)
    local more = terms.more
    hold.holds, hold.claim = hold.holds + 1, false
    hold_write(hold)
    own_hold.extend(lease, hold, more.own_ttl and tonumber(terms.ttl) or hold.ttl)
    if more.key then
        own_keys.remember(lease, hold, more.key, hold.holds, more.digest)
    end
    return own_hold.reply('entered', hold)
end

-- The answer with the hold that it has; its key counts as used from now on.
local function replay(lease, hold, terms, known)
    local more, word = terms.more or NO_MORE, hold.unclaimed and 'claimed' or 'replayed'
    if hold.unclaimed then
        own_hold.take_over(lease, hold, terms)
    end
    own_hold.answered(hold)
    if more.key and not known then
        own_keys.remember(lease, hold, more.key, hold.holds, more.digest)
    end
    return own_hold.reply(word, hold, known and known.holds)
end

-- Whether it holds with another mode, number of permits or session.
function own_hold.differs(lease, hold, more)
    return hold.mode ~= (more.mode or 'exclusive') or (hold.session or '') ~= (more.session or '')
        or more.mode == 'permits' and lease.record.permits ~= more.permits
end

-- The answer to a lease_id that holds or held the lease; nil when it does neither.
function own_hold.answer(lease, terms)
    local hold, more = own_hold.find(lease, terms.lease_id), terms.more or NO_MORE
    if not hold then
        local how = own_hold.ended(lease, terms.lease_id)
        return how and { 'over', SEQ, how } or nil
    end
    local known = more.key and own_keys.known(lease, terms.lease_id, more.key)
    if known and known.digest ~= more.digest then
        return { 'key-reused', SEQ }
    end
    if own_hold.differs(lease, hold, more) then
        return { 'differs', SEQ }
    end
    if more.key and not known and own_keys.is_full(lease, terms.lease_id) then
        return { 'keys-full', SEQ }
    end
    if hold.unclaimed or known or not more.reentrant then
        return replay(lease, hold, terms, known)
    end
    return own_hold.enter(lease, hold, terms)
end
