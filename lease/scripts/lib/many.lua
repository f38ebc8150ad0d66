-- many.lua - leases with more than one hold: shared, or with permits. Its functions are made when the first
-- such lease is met: most scripts never meet one, and making a function costs.
--
-- A script ends no more than ENDS_MAX holds that it finds over. While some are left, the lease's record has
-- rest, and nobody is granted: what is left is the next script's, and the due index and the alarm say so.
local ENDS_MAX = 64
local made_many

local function many_reads(many)
    local ends_left = ENDS_MAX

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

    -- The hold of lease_id, as hold_read() reads it, or nil.
    function many.read(lease, lease_id)
        local hold = hold_read(lease.stripe .. ':h:' .. lease.name .. '/' .. lease_id)
        if hold then
            hold.mode = lease.record.mode
        end
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
            if hold and hold.live then
                holds[#holds + 1] = hold
            elseif hold and not hold.void then
                hold_void(hold)
                redis.call('ZADD', many.index(lease), 0, lease_id)
            end
        end
        return holds
    end

    -- The ids of those that are due, and no more than may be ended in this script.
    function many.due(lease)
        local of_before = lease.record.epoch < ALIVE -- then all are of a life before
        local due = redis.call('ZRANGEBYSCORE', many.index(lease), '-inf', of_before and '+inf' or NOW,
            'LIMIT', 0, ends_left + 1)
        lease.record.rest = #due > ends_left
        due[ends_left + 1] = nil
        ends_left = ends_left - #due
        return due
    end
end

local function many_ends(many)
    -- The lease's own times, after a hold came or went.
    function many.settle_times(lease)
        local first = redis.call('ZRANGE', many.index(lease), 0, 0, 'WITHSCORES')
        redis.call('HSET', lease.record.key, 'd', first[2])
        redis.call('ZADD', lease.stripe .. ':due', first[2], lease.name)
    end

    -- After one was taken out: the lease is free when it was the last.
    function many.close(lease)
        local record = lease.record
        if redis.call('EXISTS', many.index(lease)) == 1 then
            if record.delayed_until > NOW then
                redis.call('HSET', record.key, 'b', whole(record.delayed_until))
            end
            many.settle_times(lease)
            return
        end
        local how, name = record.last_ended or 'returned', record.last_hold
        lease_free(lease, how, record.delayed_until)
        if name then
            redis.call('HSET', record.key, 'u', name, 'y', '1')
        end
        record.held, record.live, record.many, record.rest, record.ended = false, false, false, false, how
        record.mode, record.last_ended = 'exclusive', false
    end

    -- hold: as read, live or not. A grant that nobody claimed never was a hold: it is not remembered.
    function many.end_one(lease, hold, how, reason)
        local record, seq = lease.record, lease_touch(lease)
        redis.call('DEL', hold.key)
        redis.call('ZREM', many.index(lease), hold.lease_id)
        redis.call('HDEL', many.names(lease), hold.hold, many.token_name(hold.token))
        if how ~= 'returned' then
            redis.call('HSET', record.key, 'i', hold.lease_id, 'r', how, 'u', hold.hold)
            record.lease_id, record.last_ended, record.last_hold = hold.lease_id, how, hold.hold
        end
        record.delayed_until = math.max(delay_end(hold, how), record.delayed_until)
        many.close(lease)
        hold_unhook(lease, hold, how)
        history_add(lease.stripe, seq, 'e', lease.name, how, hold.token, hold.holder, reason)
    end

end

local function many_settles(many)
    -- Ends the holds that are over, as many as a script may. How many it looked at, and how many it ended.
    function many.settle(lease)
        local due, ended = many.due(lease), 0
        for _, lease_id in ipairs(due) do
            local hold = many.read(lease, lease_id)
            if hold and hold.live then
                lease_touch(lease)
                -- Its session lives longer.
                redis.call('ZADD', many.index(lease), whole(hold.deadline), lease_id)
                many.settle_times(lease)
            elseif hold then
                many.end_one(lease, hold, hold.ended, '')
                ended = ended + 1
            else
                lease_touch(lease)
                redis.call('ZREM', many.index(lease), lease_id) -- never so by our own scripts
                many.close(lease)
            end
        end
        if lease.record.rest then
            redis.call('ZADD', lease.stripe .. ':due', whole(NOW), lease.name)
        end
        return #due, ended
    end
end

local function many_of()
    if not made_many then
        made_many = {}
        many_reads(made_many)
        many_ends(made_many)
        many_settles(made_many)
    end
    return made_many
end

-- What every script does first: ends what is over. How many holds it looked at, and how many it ended.
local function lease_settle(lease)
    local record = lease.record
    if record and record.many then
        return many_of().settle(lease)
    elseif record and record.lapsed then
        hold_end(lease, record.ended, '')
        return 1, 1
    end
    return 0, 0
end
