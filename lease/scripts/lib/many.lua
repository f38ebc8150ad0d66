-- many.lua - leases with more than one hold: shared, or with permits.
--
-- A script ends no more than ENDS_MAX holds that it finds over. While some are left, the lease's record has
-- rest, and nobody is granted: what is left is the next script's, and the due index and the alarm say so.
local many = {}

function many.index(lease)
    return lease.stripe .. ':x:' .. lease.name
end

function many.names(lease)
    return lease.stripe .. ':n:' .. lease.name
end

-- What a hold's token is called among the names.
function many.token_name(token)
    return '#' .. whole(token)
end

-- The hold of lease_id, as hold_read() reads it: without a text when there is none.
function many.read(lease, lease_id)
    local hold = hold_read(lease.stripe, 'h:' .. lease.name .. '/' .. lease_id)
    hold.mode = lease.record.mode
    return hold
end

-- The one hold with this token, in a list; an empty one when there is none.
function many.with_token(lease, token)
    local lease_id = redis.call('HGET', many.names(lease), many.token_name(token))
    local hold = lease_id and many.read(lease, lease_id)
    return { hold and hold.live and hold or nil }
end

-- {hold, ...} of those who hold, at most this many. One that is found over is said to be over for good,
-- and comes first for whoever may end it.
function many.list(lease, most)
    local holds = {}
    for _, lease_id in ipairs(redis.call('ZRANGE', many.index(lease), 0, most - 1)) do
        local hold = many.read(lease, lease_id)
        if hold.live then
            holds[#holds + 1] = hold
        elseif hold.text and not hold.void then
            hold_void(hold)
            redis.call('ZADD', many.index(lease), 0, lease_id)
        end
    end
    return holds
end

-- What is told of those who hold: {{token, holder, expires in ms, held for ms, holds, meta}, ...}.
function many.holders(lease, most)
    local record, holders = lease.record, {}
    for i, hold in ipairs(record.many and many.list(lease, most) or { record.live and record or nil }) do
        holders[i] = { hold.token, hold.holder, hold.left_ms, NOW - hold.granted, hold.holds, hold.meta }
    end
    return holders
end

-- The ids of those that are due, and no more than may be ended in this script.
function many.due(lease)
    ends_left = ends_left or ENDS_MAX
    local of_before = lease.record.epoch < ALIVE -- then all are of a life before
    local due = redis.call('ZRANGEBYSCORE', many.index(lease), '-inf', of_before and '+inf' or NOW,
        'LIMIT', 0, ends_left + 1)
    lease.record.rest = #due > ends_left
    due[ends_left + 1] = nil
    ends_left = ends_left - #due
    return due
end

-- Writes the lease, after a hold came or went: it is due when the first of them is.
function many.write(lease)
    local first = redis.call('ZRANGE', many.index(lease), 0, 0, 'WITHSCORES')
    lease.record.deadline = tonumber(first[2])
    hold_write(lease.record)
end

-- One more hold begins (grant.lua).
function many.begin(lease, terms, token, deadline, claim)
    local record, hold, more = lease.record, many.read(lease, terms.lease_id), terms.more
    hold_begin(hold, terms, token, deadline, claim)
    hold_write(hold)
    redis.call('ZADD', many.index(lease), whole(deadline), terms.lease_id)
    redis.call('HSET', many.names(lease), terms.hold, terms.lease_id, many.token_name(token), terms.lease_id)
    if not record.many then
        record.many, record.permits, record.lease_id = more.mode, more.permits or 0, ''
        record.last_hold, record.delayed_until = false, 0
    end
    record.state, record.token, record.epoch, record.hold = 'held', token, EPOCH, terms.hold
    many.write(lease)
    return hold
end

-- After one was taken out: the lease is free when it was the last.
function many.close(lease)
    local record = lease.record
    if redis.call('EXISTS', many.index(lease)) == 1 then
        many.write(lease)
    else
        hold_stop(record, record.last_ended or 'returned', NOW + REMEMBER_MS, record.delayed_until)
        hold_judge(record)
    end
end

-- hold: as read, live or not. A grant that nobody claimed never was a hold: it is not remembered.
function many.end_one(lease, hold, how, reason)
    local record = lease.record
    hold_unhook(lease, hold, how)
    history_add(lease.stripe, 'e', lease.name, how, hold.token, hold.holder, reason)
    hold_delete(hold)
    redis.call('ZREM', many.index(lease), hold.lease_id)
    redis.call('HDEL', many.names(lease), hold.hold, many.token_name(hold.token))
    if how ~= 'returned' then
        record.lease_id, record.last_ended, record.last_hold = hold.lease_id, how, hold.hold
    end
    record.delayed_until = math.max(delay_end(hold, how), record.delayed_until)
    many.close(lease)
end

-- Ends the holds that are over, as many as a script may. How many it looked at, and how many it ended.
function many.settle(lease)
    local due, holds, ended = many.due(lease), {}, 0
    for i, lease_id in ipairs(due) do
        holds[i] = many.read(lease, lease_id) -- all of them before the first write
    end
    for i, lease_id in ipairs(due) do
        local hold = holds[i]
        if hold.live then -- its session lives longer
            touch(lease.stripe)
            redis.call('ZADD', many.index(lease), whole(hold.deadline), lease_id)
            many.write(lease)
        elseif hold.text then
            many.end_one(lease, hold, hold.ended, '')
            ended = ended + 1
        else
            touch(lease.stripe)
            redis.call('ZREM', many.index(lease), lease_id) -- never so by our own scripts
            many.close(lease)
        end
    end
    if lease.record.rest then
        lease.record.deadline = NOW
        hold_write(lease.record)
    end
    return #due, ended
end

-- What every script does first: ends what is over. How many holds it looked at, and how many it ended.
local function lease_settle(lease)
    local record = lease.record
    if record.many then
        return many.settle(lease)
    elseif record.lapsed then
        hold_end(lease, record.ended, '')
        return 1, 1
    end
    return 0, 0
end
