-- own_hold.lua - what an acquire is told when its lease_id is known already, or when it gets nothing,
-- and what its lease_id may do.
local KEYS_MAX, SESSION_LEASES_MAX = 1000, 10000
local own_hold = {}

-- Whether this session may be used with this secret, for so many leases: nil, or the word for why not.
function own_hold.session_wrong(more, count)
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
function own_hold.find(lease, lease_id)
    local hold = lease.record
    if hold.many then
        hold = multi.read(lease, lease_id)
    end
    return hold.live and hold.lease_id == lease_id and hold or nil
end

-- How the last hold ended, if it was this lease_id's; nil: it was not, or it never was a hold. One of
-- many that is over may not have been taken out yet: it is now.
function own_hold.ended(lease, lease_id)
    local record = lease.record
    if record.many then
        local hold = multi.read(lease, lease_id)
        if hold.lapsed then
            multi.end_one(lease, hold, hold.ended, '')
        end
    end
    if record.lease_id ~= lease_id then
        return nil
    end
    local how = record.many and record.last_ended or (not record.held and record.ended)
    return how ~= 'returned' and how or nil
end

-- What a release or a renewal that found no hold is told.
function own_hold.ended_as(lease, lease_id, hold)
    local how, record = own_hold.ended(lease, lease_id), lease.record
    if not how or hold ~= '' and hold ~= (record.last_hold or record.hold) then
        return 'unknown'
    end
    return how
end

-- Why nothing was granted: {"held", seq, token, holder or "", expires in ms}.
function own_hold.held(lease)
    local record = lease.record
    if record.many then
        local hold = multi.list(lease, 1)[1] or {}
        return { 'held', SEQ, record.token, hold.holder or '', hold.left_ms or 0 }
    end
    if record.live then
        return { 'held', SEQ, record.token, record.holder, record.left_ms }
    end
    return { 'held', SEQ, record.token, '', math.max(0, record.delayed_until - NOW) }
end

function own_hold.reply(word, hold, holds)
    return { word, SEQ, hold.token, hold.epoch, hold.hold, hold.holder, hold.ttl, hold.left_ms,
        holds or hold.holds, hold.meta, hold.mode }
end

-- Somebody is told of this hold: from now on it is nobody's to give back (lease/scripts/leave.lua).
function own_hold.answered(hold)
    if hold.unanswered then
        hold.claim = false
        hold_write(hold)
    end
end

local function set_deadline(lease, hold, deadline)
    hold.deadline = deadline
    hold_write(hold)
    if lease.record.many then
        redis.call('ZADD', multi.index(lease), whole(deadline), hold.lease_id)
        multi.write(lease)
    end
    if lease.record.queue then
        line.set_alarm(lease)
    end
end

-- Sets the hold's time anew. A session's hold has the session's time, whatever is asked: who renews it
-- gets 200 with that time, and nothing has changed; it is kept by renewing the session.
function own_hold.extend(lease, hold, ttl_ms)
    if not hold.session then
        hold.ttl = ttl_ms
        set_deadline(lease, hold, NOW + ttl_ms)
    end
end

-- A session's hold is named in another way until it is claimed (session.lua): "/" in front.
local function session_names(lease, hold, before, now)
    local list, one = string.gsub(hold.session, ':s:', ':y:', 1), lease.name .. '/' .. hold.lease_id
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
end

-- Nobody heard of it, and its client, which has left, may come back: it is offered to its lease_id, at no desk.
function own_hold.offer(lease, hold)
    if hold.unanswered and hold.session then
        session_names(lease, hold, '', '/')
    end
    if hold.unanswered then
        hold.claim = lease.stripe .. ':d:- 0'
        set_deadline(lease, hold, NOW + CLAIM_MS)
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

local function keys_of(lease, lease_id)
    return lease.stripe .. ':k:' .. lease.name .. '/' .. lease_id
end

-- The keys of a hold that is over, as the due index of this script's stripe names them, are forgotten; false: the
-- lease_id holds the lease again, and they are its.
function own_hold.forget(member)
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
    redis.call('DEL', keys_of(lease, lease_id))
    redis.call('ZREM', KEYS[2], member)
    return true
end

-- What an Idempotency-Key of this lease_id has done: {holds, digest}, or nil; one of a life before ALIVE
-- is void, as its hold is.
function own_hold.known(lease, lease_id, key)
    local known = redis.call('HGET', keys_of(lease, lease_id), key)
    if not known then
        return nil
    end
    local epoch, holds, digest = string.match(known, '^(%d+) (%d+) (.*)$')
    return tonumber(epoch) >= ALIVE and { holds = tonumber(holds), digest = digest } or nil
end

function own_hold.remember(lease, hold, key, holds, digest)
    touch(lease.stripe)
    redis.call('HSET', keys_of(lease, hold.lease_id), key,
        EPOCH_TEXT .. ' ' .. whole(holds) .. ' ' .. digest)
    hold.keys = '1'
    hold_write(hold)
end

function own_hold.is_full(lease, lease_id)
    return redis.call('HLEN', keys_of(lease, lease_id)) >= KEYS_MAX
end

function own_hold.enter(lease, hold, terms)
    local more = terms.more
    hold.holds, hold.claim = hold.holds + 1, false
    hold_write(hold)
    own_hold.extend(lease, hold, more.own_ttl and tonumber(terms.ttl) or hold.ttl)
    if more.key then
        own_hold.remember(lease, hold, more.key, hold.holds, more.digest)
    end
    return own_hold.reply('entered', hold)
end

-- One of its holds, or all; a key that was not known before is kept. desk: as ARGV[9] of release.lua.
function own_hold.release(lease, hold, how_many, key, digest, may_grant, desk)
    local holds = how_many == 'all' and 0 or hold.holds - 1
    if key ~= '' and own_hold.is_full(lease, hold.lease_id) then
        return { 'keys-full', SEQ }
    end
    if key ~= '' then
        own_hold.remember(lease, hold, key, holds, digest)
    end
    if holds > 0 then
        hold.holds, hold.claim = holds, false
        hold_write(hold)
        return { 'left', SEQ, holds }
    end
    if lease.record.many then
        multi.end_one(lease, hold, 'released', '')
    else
        hold_over(lease, 'released', '')
        if lease.record.queue then
            hold_judge(lease.record)
        end
    end
    own_desk = desk ~= '' and desk or nil
    local rest = lease_close(lease, may_grant)
    if handed then
        local reply = own_hold.reply('handed', handed.hold)
        reply[12], reply[13], reply[14], reply[15] = rest, handed.wid, handed.hold.lease_id, handed.keep
        return reply
    end
    return { 'released', SEQ, rest, handed_desk, handed_word }
end

-- The grant was handed on to an earlier request of this lease_id, which gets it no more: the name of the
-- hold tells the two apart.
function own_hold.take_over(lease, hold, terms)
    local desk, wid = string.match(hold.unclaimed, '^(.*) (.*)$')
    touch(lease.stripe)
    redis.call('PUBLISH', desk, 'superseded ' .. wid)
    if lease.record.many then
        redis.call('HDEL', multi.names(lease), hold.hold)
        redis.call('HSET', multi.names(lease), terms.hold, terms.lease_id)
    end
    if lease.record.hold == hold.hold then
        lease.record.hold = terms.hold
    end
    hold.hold = terms.hold
    own_hold.claim(lease, hold)
    own_hold.answered(hold)
end

-- It is told of the hold that it has; its key counts as used from now on.
local function replay(lease, hold, terms, known)
    local more, word = terms.more or NO_MORE, hold.unclaimed and 'claimed' or 'replayed'
    if hold.unclaimed then
        own_hold.take_over(lease, hold, terms)
    end
    own_hold.answered(hold)
    if more.key and not known then
        own_hold.remember(lease, hold, more.key, hold.holds, more.digest)
    end
    return own_hold.reply(word, hold, known and known.holds)
end

-- The answer to a lease_id that holds or held the lease; nil when it does neither.
function own_hold.answer(lease, terms)
    local hold, more = own_hold.find(lease, terms.lease_id), terms.more or NO_MORE
    if not hold then
        local how = own_hold.ended(lease, terms.lease_id)
        return how and { 'over', SEQ, how } or nil
    end
    local known = more.key and own_hold.known(lease, terms.lease_id, more.key)
    if known and known.digest ~= more.digest then
        return { 'key-reused', SEQ }
    end
    if hold.mode ~= (more.mode or 'exclusive') or (hold.session or '') ~= (more.session or '')
        or more.mode == 'permits' and lease.record.permits ~= more.permits then
        return { 'differs', SEQ }
    end
    if more.key and not known and own_hold.is_full(lease, terms.lease_id) then
        return { 'keys-full', SEQ }
    end
    if hold.unclaimed or known or not more.reentrant then
        return replay(lease, hold, terms, known)
    end
    return own_hold.enter(lease, hold, terms)
end

