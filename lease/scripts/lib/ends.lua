-- ends.lua - how a hold ends, and a lease with it.
--
-- A lease, as the files here hand it on: {stripe = key of its stripe, name = , record = as hold_read() read
-- it}.
local REMEMBER_MS = tonumber(ARGV[2])
local others_touched = {}

-- Raises the sequence number of the lease's stripe, once for a script, and returns it. That of the script's
-- own stripe rises in any case: by it the caller knows what a store has lost.
local function lease_touch(lease)
    touch()
    if lease.stripe == KEYS[1] then
        return SEQ
    end
    local seq = others_touched[lease.stripe] or redis.call('HINCRBY', lease.stripe, 'seq', 1)
    others_touched[lease.stripe] = seq
    return seq
end

local function lease_open(stripe, name)
    return { stripe = stripe, name = name, record = hold_read(stripe .. ':l:' .. name) }
end

-- What is left when the exclusive hold, or the last of many, is over: for how long it is remembered, and
-- until when nobody is granted.
local function lease_free(lease, how, until_ms)
    local record = lease.record
    local forget_at = whole(math.max(NOW + REMEMBER_MS, until_ms))
    if record.more then
        local last = (until_ms > NOW or record.queue) and 'M' or 'y' -- else one of them stays
        hold_stop(record.key, how, forget_at, 'M', 'N', 'r', 'u', 'c', 'x', 'v', 'j', 'a', 'b', last)
    else
        hold_stop(record.key, how, forget_at)
    end
    if until_ms > NOW then
        redis.call('HSET', record.key, 'y', '1', 'b', whole(until_ms))
    end
    redis.call('ZADD', lease.stripe .. ':due', forget_at, lease.name)
end

-- What else hangs on a hold of lease_id: its place in a session (lib/session.lua), its keys.
local function hold_unhook(lease, hold, how)
    if hold.session then
        local list = string.gsub(hold.session, ':s:', ':y:', 1)
        local one = (hold.unclaimed and '/' or '') .. lease.name .. '/' .. hold.lease_id
        if redis.call('HDEL', list, one) == 1 and how ~= 'released' and how ~= 'returned'
            and not (hold.unclaimed or hold.session_ended) then
            redis.call('HSET', list, lease.name, how) -- to be named when the session is renewed
        end
    end
    if hold.keys then
        redis.call('ZADD', lease.stripe .. ':due', whole(NOW + REMEMBER_MS),
            ':k:' .. lease.name .. '/' .. hold.lease_id)
    end
end

-- lock_delay_ms counts from the moment of the loss: the deadline, or the end of the session, if that was
-- before somebody noticed.
local function delay_end(hold, how)
    local is_loss = how == 'expired' or how == 'session' or how == 'store-restarted'
    if is_loss and (hold.delay_ms or 0) > 0 then
        return math.min(NOW, hold.deadline) + hold.delay_ms
    end
    return 0
end

local function hold_end(lease, how, reason)
    local record, seq = lease.record, lease_touch(lease)
    record.delayed_until = delay_end(record, how)
    lease_free(lease, how, record.delayed_until)
    hold_unhook(lease, record, how)
    history_add(lease.stripe, seq, 'e', lease.name, how, record.token, record.holder, reason)
    record.held, record.live, record.lapsed, record.ended = false, false, false, how
end
