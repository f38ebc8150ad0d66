-- multi_hold.lua - leases with more than one hold: shared, or with permits.
--
-- A script ends no more than ENDS_MAX holds that it finds over. While some are left, the lease's record has
-- rest, and nobody is granted: what is left is the next script's, and the due index and the alarm say so.
local ENDS_MAX, multi = 64, {}

function multi.index(lease)
    return lease.stripe .. ':x:' .. lease.name
end

function multi.names(lease)
    return lease.stripe .. ':n:' .. lease.name
end

-- What a hold's token is called among the names.
function multi.token_name(token)
    return '#' .. whole(token)
end

-- The hold of lease_id, as hold_read() reads it: without a text when there is none.
function multi.read(lease, lease_id, into)
    local hold = hold_read(lease.stripe, 'h:' .. lease.name .. '/' .. lease_id, into)
    hold.mode = lease.record.mode
    return hold
end

-- The one hold with this token, in a list; an empty one when there is none.
function multi.with_token(lease, token)
    local lease_id = redis.call('HGET', multi.names(lease), multi.token_name(token))
    local hold = lease_id and multi.read(lease, lease_id)
    return { hold and hold.live and hold or nil }
end

-- {hold, ...} of those who hold, at most this many; or what say() makes of each, which has one table after the other
-- in the same: a thousand tables take three times as long. One that is found over is said to be over for good,
-- and comes first for the one that may end it; while some are left to be ended they are looked for from the other end.
function multi.list(lease, most, say)
    local holds, index, into = {}, multi.index(lease), say and hold_table()
    local ids = lease.record.rest and redis.call('ZRANGE', index, 0, most - 1, 'REV')
    for _, lease_id in ipairs(ids or redis.call('ZRANGE', index, 0, most - 1)) do
        local hold = multi.read(lease, lease_id, into)
        if hold.live then
            holds[#holds + 1] = say and say(hold) or hold
        elseif hold.text and not hold.void then
            hold_void(hold)
            redis.call('ZADD', index, 0, lease_id)
        end
    end
    return holds
end

-- What an answer says of those that hold: {{token, holder, expires in ms, held for ms, holds, meta, identity or
-- "", name of the hold, id of its session or "", ttl_ms, ms since it was granted, claimed or renewed last,
-- for how long it waited}, ...}.
local function holder_of(hold)
    local held_ms = NOW - hold.granted
    return { hold.token, hold.holder, hold.left_ms, held_ms, hold.holds, hold.meta, hold.identity, hold.hold,
        hold.session and string.match(hold.session, ':s:(.*)$') or '', hold.ttl,
        math.max(0, math.min(held_ms, hold.ttl - hold.left_ms)),
        tonumber(string.match(hold.grant_id, '\31w(%d+)') or 0) }
end

function multi.holders(lease, most)
    local record = lease.record
    return record.many and multi.list(lease, most, holder_of) or { record.live and holder_of(record) or nil }
end

-- Adds to a reply what an answer says of a lease: state, last token or 0, its epoch, mode or "", how many wait,
-- those that hold as above, for how many ms more it is delayed, permits or 0, how many refusals are kept.
function multi.tell(reply, lease, holders, delayed_until)
    local record, at, key = lease.record, #reply, lease.stripe .. ':%s:' .. lease.name
    local state = #holders > 0 and 'held' or delayed_until > NOW and 'delayed' or 'free'
    reply[at + 1], reply[at + 2] = state, record.token
    reply[at + 3] = record.token > 0 and record.epoch or EPOCH
    reply[at + 4] = state == 'held' and record.mode or ''
    reply[at + 5] = record.queue and redis.call('ZCARD', string.format(key, 'q')) or 0
    reply[at + 6], reply[at + 7] = holders, state == 'delayed' and delayed_until - NOW or 0
    reply[at + 8], reply[at + 9] = record.permits, redis.call('LLEN', string.format(key, 'f'))
    return reply
end

-- The ids of those that are due, and no more than may be ended in this script.
function multi.due(lease)
    local done = call_table('done')
    local ends_left = ENDS_MAX - (done.ends or 0)
    local of_before = lease.record.epoch < ALIVE -- then all are of an epoch before
    local due = redis.call('ZRANGEBYSCORE', multi.index(lease), '-inf', of_before and '+inf' or NOW,
        'LIMIT', 0, ends_left + 1)
    lease.record.rest = #due > ends_left
    due[ends_left + 1] = nil
    done.ends = (done.ends or 0) + #due
    return due
end

-- Writes the lease, after a hold came or went: it is due when the first of them is.
function multi.write(lease)
    local first = redis.call('ZRANGE', multi.index(lease), 0, 0, 'WITHSCORES')
    lease.record.deadline = tonumber(first[2])
    hold_write(lease.record)
end

-- After one was taken out: the lease is free when it was the last.
function multi.close(lease)
    local record = lease.record
    if redis.call('EXISTS', multi.index(lease)) == 1 then
        multi.write(lease)
    else
        hold_stop(record, record.last_ended or 'returned', NOW + REMEMBER_MS, record.delayed_until)
        hold_judge(record)
    end
end

-- hold: as read, live or not. A grant that nobody claimed never was a hold: it is not remembered.
function multi.end_one(lease, hold, how, reason)
    local record, delayed_until = lease.record, delay_end(hold, how)
    hold_unhook(lease, hold, how)
    history_add(lease.stripe, 'e', lease.name, how, hold.token, history_holder(hold),
        history_end(hold, reason, delayed_until))
    if hold.identity ~= '' and hold.held and hold.epoch >= ALIVE then
        use_count(lease.stripe, 'h', hold.identity, '-1')
    end
    hold_delete(hold)
    redis.call('ZREM', multi.index(lease), hold.lease_id)
    redis.call('HDEL', multi.names(lease), hold.hold, multi.token_name(hold.token))
    if how ~= 'returned' then
        record.lease_id, record.last_ended, record.last_hold = hold.lease_id, how, hold.hold
        record.identity = hold.identity
    end
    record.delayed_until = math.max(delayed_until, record.delayed_until)
    multi.close(lease)
end

-- Ends the holds that are over, as many as a script may. How many it looked at, and how many it ended.
function multi.settle(lease)
    local due, holds, ended = multi.due(lease), {}, 0
    for i, lease_id in ipairs(due) do
        holds[i] = multi.read(lease, lease_id) -- all of them before the first write
    end
    for i, lease_id in ipairs(due) do
        local hold = holds[i]
        if hold.live then -- its session lives longer
            touch(lease.stripe)
            redis.call('ZADD', multi.index(lease), whole(hold.deadline), lease_id)
            multi.write(lease)
        elseif hold.text then
            multi.end_one(lease, hold, hold.ended, '')
            ended = ended + 1
        else
            touch(lease.stripe)
            redis.call('ZREM', multi.index(lease), lease_id) -- never so by our own scripts
            multi.close(lease)
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
        return multi.settle(lease)
    elseif record.lapsed then
        hold_end(lease, record.ended, '')
        return 1, 1
    end
    return 0, 0
end

-- The end of a hold of the lease: of one of many, or of the exclusive one.
local function lease_end_hold(lease, hold, how, reason)
    if lease.record.many then
        multi.end_one(lease, hold, how, reason)
    else
        hold_end(lease, how, reason)
    end
end

-- Why nothing was granted: {"held", seq, token, holder or "", expires in ms}.
local function lease_held(lease)
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
