-- hold_end.lua - how a hold ends, and a lease with it (own_hold.lua has the form of a lease).

-- Whether work on one lease was done, and what it returns. What nothing may rest on stays as it is, and is in
-- nobody's way: of many leases each is worked on by itself, and no record of one is kept from before. That Redis
-- takes no write now is the fault of no record: it ends the script.
local NO_WRITES = 'Write commands are not allowed'
local function lease_try(work, ...)
    local is_done, result = pcall(work, ...)
    if not is_done then
        if type(result) == 'string' and string.find(result, NO_WRITES, 1, true) then
            error(result, 0)
        end
        records, record_field = nil, nil -- they may say what is not written
    end
    return is_done, is_done and result or nil
end

-- Since when the lease is no more than remembered; nil: it is held, or promised or kept from others. Its
-- history says so. Where nothing is noted, so does the time when it is forgotten, if all services remember
-- equally long.
local function lease_over_since(lease)
    local record = lease.record
    if record.held or record.queue or record.delayed_until > NOW then
        return nil
    end
    local last = redis.call('LINDEX', lease.stripe .. ':e:' .. lease.name, -1)
    local at = last and string.match(last, '\t(%d+)\t[^\t]*$')
    return math.max(tonumber(at) or 0, record.deadline - REMEMBER_MS)
end

-- The last element of a reply: nothing for nobody's.
local function identity_told(identity)
    return identity ~= '' and identity or nil
end

-- Nothing is known any more.
local function hold_delete(record)
    touch(record.stripe)
    redis.call('HDEL', record.stripe, record.field)
    if record == own_record then
        own_record, record_field = nil, nil
    else
        records[record.stripe .. record.field] = nil
    end
end

-- Nothing of it is left.
local function lease_forget(lease)
    hold_delete(lease.record)
    redis.call('DEL', lease.stripe .. ':e:' .. lease.name, lease.stripe .. ':f:' .. lease.name)
    redis.call('ZREM', lease.stripe .. ':due', lease.name)
end

-- lock_delay_ms counts from the moment of the loss: the deadline, or the end of the session, if that was
-- before somebody noticed.
local function delay_end(hold, how)
    local is_loss = how == 'expired' or how == 'session' or how == 'store-restarted'
    if is_loss and hold.delay_ms > 0 then
        return math.min(NOW, hold.deadline) + hold.delay_ms
    end
    return 0
end

-- The set of what a session holds (session.lua).
local function session_holds_key(session)
    return (string.gsub(session, ':s:', ':y:', 1))
end

-- Its entry there; one that is not claimed yet has another.
local function session_entry(lease, hold)
    return (hold.unclaimed and '/' or '') .. lease.name .. '/' .. hold.lease_id
end

-- The hash of its Idempotency-Keys, behind the stripe: as the due index has it (repeated.lua).
local function keys_member(lease, lease_id)
    return ':k:' .. lease.name .. '/' .. lease_id
end

-- What else hangs on a hold is released: its place in its session, its keys.
local function hold_unhook(lease, hold, how)
    if hold.session then
        local list = session_holds_key(hold.session)
        if redis.call('HDEL', list, session_entry(lease, hold)) == 1 and how ~= 'released'
            and how ~= 'returned' and not (hold.unclaimed or hold.session_ended) then
            redis.call('HSET', list, lease.name, how) -- to be named when the session is renewed
        end
    end
    if hold.keys then
        redis.call('ZADD', lease.stripe .. ':due', whole(NOW + REMEMBER_MS),
            keys_member(lease, hold.lease_id))
    end
end

-- Of an exclusive hold that was handed on, the last one before it: how it ended, lease_id, identity, name; or nothing.
local function hold_before(record)
    local text = record.held and not record.many and record.last_ended
    return string.match(text or '', '^(.-)\31(.-)\31(.-)\31(.*)$')
end

-- The exclusive hold is over, or the last of many: the lease is remembered, and nobody is granted before
-- delayed_until. It is not judged anew.
local function hold_stop(record, how, forget_at, delayed_until)
    record.state = how; record.deadline = math.max(forget_at, delayed_until)
    record.delayed_until = delayed_until > NOW and delayed_until or 0
    record.holder = ''; record.meta = '' -- whose it was stays, as its lease_id does
    record.ttl = false; record.granted = false; record.holds = false; record.many = false
    record.mode = false; record.permits = 0; record.rest = false; record.last_ended = false
    record.claim = false; record.session = false; record.keys = false; record.delay_ms = 0
    record.void = false; record.grant_id = ''
    hold_put(record)
end

-- For who reads nothing more of the record: it is not judged anew. A grant that goes back never was a hold: the last one is
-- again the one before it.
local function hold_over(lease, how, reason)
    local record = lease.record
    local delayed_until = delay_end(record, how)
    hold_unhook(lease, record, how)
    history_add(lease.stripe, 'e', lease.name, how, record.token, history_holder(record),
        history_end(record, reason, delayed_until), record)
    if record.identity ~= '' and record.epoch >= ALIVE then
        use_count(record.stripe, 'h', record.identity, '-1')
    end
    if how == 'returned' and record.last_ended then
        how, record.lease_id, record.identity, record.last_hold = hold_before(record)
    end
    hold_stop(record, how, NOW + REMEMBER_MS, delayed_until)
end

local function hold_end(lease, how, reason)
    hold_over(lease, how, reason)
    hold_judge(lease.record)
end
