-- line.lua - those who wait for a lease, first come, first served.
--
--   pawl:{SS}:q:NAME  zset  lease_id -> ticket: the stripe's sequence number when it joined
--   pawl:{SS}:w:NAME  hash  lease_id -> its terms as JSON (lib/grant.lua), for as long as it waits
--   pawl:{SS}:d:ID    hash  a desk: one worker of one lease service, where waiters' clients stand
--                           (lib/desk.lua)
--   pawl:{store}:alarm zset NAME -> store time at which a lease in whose line somebody waits must be looked
--                           at: all services watch it
--
-- Whoever frees a lease hands it on in the same script: to the first in line whose desk lives. The grant is
-- unclaimed until the desk has claimed it, and told to nobody; after CLAIM_MS it goes on to the next. A desk
-- is told by a message to the channel of its key's name: "granted WID" or "superseded WID".
--
-- Somebody who waits for several leases stands in the line of each, from one step on, so that of two who want
-- the same ones one is in front of the other everywhere; nothing is granted before all can be, in one step
-- (lib/all.lua). Until then who is first keeps those behind him waiting: that is what first come, first
-- served means.
--
-- A script does a bounded amount of work, whatever stands in the lines: PURGE_MAX are taken out, and when
-- WORK_MAX holds were ended or granted, or leases looked at for all or none, nothing more is begun. What is
-- left is somebody's at once: its alarm says so.
local ALARM, PURGE_MAX, WORK_MAX = 'pawl:{store}:alarm', 1000, 64
local made_line
local handed_desk, handed_word = '', '' -- to whom this script handed on last, and what it is told

local function line_places(line)
    local work = 0

    local function queue_of(lease)
        return lease.stripe .. ':q:' .. lease.name
    end

    local function waiters_of(lease)
        return lease.stripe .. ':w:' .. lease.name
    end

    -- Notes so much work; whether it is enough.
    function line.works(count)
        work = work + count
        return work >= WORK_MAX
    end

    -- The terms of lease_id, if it waits.
    function line.terms(lease, lease_id)
        local packed = redis.call('HGET', waiters_of(lease), lease_id)
        return packed and cjson.decode(packed) or nil
    end

    -- The ids of the first two in line.
    function line.front(lease)
        return redis.call('ZRANGE', queue_of(lease), 0, 1)
    end

    function line.is_empty(lease)
        return redis.call('EXISTS', queue_of(lease)) == 0
    end

    -- The keys of the whole line.
    function line.keys(lease)
        return queue_of(lease), waiters_of(lease)
    end

    function line.out(lease, lease_id)
        lease_touch(lease)
        redis.call('ZREM', queue_of(lease), lease_id)
        redis.call('HDEL', waiters_of(lease), lease_id)
    end

    -- At the end of the line, or in the place that lease_id has there already.
    function line.place(lease, lease_id, packed)
        local key = lease.stripe .. ':l:' .. lease.name
        redis.call('ZADD', queue_of(lease), 'NX', lease_touch(lease), lease_id)
        redis.call('HSET', waiters_of(lease), lease_id, packed)
        if not lease.record then
            local forget_at = whole(NOW + REMEMBER_MS)
            redis.call('HSET', key, 's', 'none', 't', 0, 'e', STRIPE[6], 'h', '', 'i', '', 'd', forget_at,
                'w', '1', 'y', '1')
            redis.call('ZADD', lease.stripe .. ':due', forget_at, lease.name)
            lease.record = hold_read(key)
        elseif not lease.record.queue then
            redis.call('HSET', key, 'w', '1', 'y', '1')
            lease.record.queue = '1'
        end
    end
end

local function line_joins(line)
    -- In its place, and the desk of before is told.
    function line.join(lease, terms, packed)
        local before = line.terms(lease, terms.lease_id)
        lease_touch(lease)
        if before then
            redis.call('PUBLISH', before.more.desk, 'superseded ' .. before.more.wid)
        end
        if before and before.more.home then
            all_of(line).drop(before, lease.name)
        end
        line.place(lease, terms.lease_id, packed)
        line.set_alarm(lease, before and NOW or nil) -- what fits now may not be what fitted before
    end

end

local function line_heads(line)
    local desks, purged = {}, 0

    -- Store time until which the desk is taken to live.
    function line.lives_until(desk)
        desks[desk] = desks[desk] or desk_lives_until(redis.call('HGET', desk, 'at'))
        return desks[desk]
    end

    function line.lives(desk)
        return NOW <= line.lives_until(desk)
    end

    local function session_lives(key)
        local s = redis.call('HMGET', key, 's', 'd', 'e')
        return s[1] == 'live' and NOW < tonumber(s[2]) and tonumber(s[3]) >= ALIVE
    end

    -- The terms of the first in line whose desk lives, and how many in front of him were taken out. nil:
    -- nobody is, or not yet.
    function line.first(lease)
        local before = purged
        while purged < PURGE_MAX do
            local ids = line.front(lease)
            local lease_id = ids[1]
            local terms = lease_id and line.terms(lease, lease_id)
            lease.is_alone = not ids[2]
            if not lease_id then
                break
            end
            if terms and line.lives(terms.more.desk) then
                if not terms.more.session or session_lives(terms.more.session) then
                    return terms, purged - before
                end
                lease_touch(lease)
                redis.call('PUBLISH', terms.more.desk, 'session-lost ' .. terms.more.wid)
            end
            local lines = terms and terms.more.home and all_of(line).drop(terms) or 0
            if lines == 0 then
                line.out(lease, lease_id)
            end
            purged = purged + math.max(lines, 1)
        end
        return nil, purged - before
    end

end

local function line_fits(line)
    -- Whether these terms go together with what holds now.
    function line.fits(record, terms)
        if not record then
            return true
        end
        if (record.delayed_until or 0) > NOW then
            return false
        end
        if record.many then
            local more = terms.more or {}
            if record.mode ~= more.mode or record.rest then
                return false
            end
            return record.mode == 'shared' or (record.permits == more.permits and
                redis.call('ZCARD', (string.gsub(record.key, ':l:', ':x:', 1))) < record.permits)
        end
        return not record.held
    end

    -- Ends what is over.
    function line.settle(lease)
        local looked, ended = lease_settle(lease)
        line.works(looked)
        if ended > 0 and lease.record.queue then
            line.set_alarm(lease, NOW) -- of a session that was ended: its alarm may be far away
        end
    end

end

local function line_alarms(line)
    -- When the lease must be looked at, if nothing happens before.
    function line.due_at(lease)
        local record = lease.record
        local at = lease.look_at or NOW + 1000 -- perhaps who is first has died
        if record.held and not record.many then
            at = record.deadline
        elseif (record.delayed_until or 0) > NOW then
            at = math.min(at, record.delayed_until)
        elseif tokens_wanting(lease.stripe) == 'ceiling' then
            at = NOW + 50
        elseif record.many then
            at = math.min(at, tonumber(redis.call('ZRANGE', many_of().index(lease), 0, 0, 'WITHSCORES')[2]))
        end
        return at
    end

    -- Has the lease looked at when it is due, or at the time given; an earlier alarm stays, but one that has
    -- rung, if it was looked at just now. lease.record may be missing when a time is given.
    -- is_empty: of the line, if it is known.
    function line.set_alarm(lease, at, is_looked_at, is_empty)
        if is_empty == nil then
            is_empty = line.is_empty(lease)
        end
        if is_empty then
            lease_touch(lease)
            redis.call('ZREM', ALARM, lease.name)
            redis.call('HDEL', lease.stripe .. ':l:' .. lease.name, 'w')
            if lease.record then
                lease.record.queue = nil
            end
            return
        end
        at = at or line.due_at(lease)
        local set = tonumber(redis.call('ZSCORE', ALARM, lease.name))
        if not set or set > at or is_looked_at and set <= NOW then
            lease_touch(lease) -- one that rings too early finds nothing to do
            redis.call('ZADD', ALARM, whole(at), lease.name)
        end
    end

    -- The same for many leases at once, with no alarm to be looked at: names whose alarms are taken off;
    -- times and names.
    function line.alarms(off, set)
        if #off > 0 then
            redis.call('ZREM', ALARM, unpack(off))
        end
        if #set > 0 then
            redis.call('ZADD', ALARM, unpack(set))
        end
    end

end

local function line_grants(line)
    -- The leases that are to be granted to who is first, and all that he asked for; else nil.
    function line.ready(lease, terms, may_grant)
        if may_grant ~= 'grant' or tokens_wanting(lease.stripe) or not line.fits(lease.record, terms) then
            return nil
        end
        if not terms.more.home then
            return { lease }, terms
        end
        local leases, full = all_of(line).ready(lease, terms)
        -- Whatever frees the others looks at them: here it matters only whether he still lives.
        lease.look_at = not leases and line.lives_until(terms.more.desk) + 1 or nil
        return leases, full
    end

    function line.hand_on(lease, leases, terms)
        local desk, wid = terms.more.desk, terms.more.wid
        local off, set, lines = {}, {}, {}
        for _, one in ipairs(leases) do
            if one.is_alone then
                lines[#lines + 1], lines[#lines + 2] = line.keys(one)
            else
                line.out(one, terms.lease_id)
            end
            grant(one, terms, desk .. ' ' .. wid)
            if one ~= lease and one.is_alone then
                redis.call('HDEL', one.stripe .. ':l:' .. one.name, 'w')
                off[#off + 1] = one.name
            elseif one ~= lease then -- those behind may go together with him there too
                set[#set + 1], set[#set + 2] = whole(terms.more.mode and NOW or terms.deadline), one.name
            end
        end
        if #lines > 0 then
            redis.call('DEL', unpack(lines))
        end
        if terms.more.home then
            line.alarms(off, set)
            all_of(line).forget(terms)
        end
        line.works(#leases)
        handed_desk, handed_word = desk, 'granted ' .. wid
        redis.call('PUBLISH', desk, handed_word)
        lease.record = hold_read(lease.stripe .. ':l:' .. lease.name)
    end
end

local function line_turns(line)
    -- Hands on to the first in line, and to those behind who go together with him; says whether there may be
    -- more to do. may_grant: the caller's word, as in acquire.lua. Afterwards the record is as it is.
    function line.turn(lease, may_grant)
        local rest, leases, full
        repeat
            lease.look_at, leases = nil, nil
            line.settle(lease)
            local terms = line.first(lease)
            rest = lease.record.rest or not terms and not line.is_empty(lease) or terms and line.works(0)
            if terms and not rest then
                leases, full = line.ready(lease, terms, may_grant)
            end
            if leases then
                line.hand_on(lease, leases, full)
            end
        until not (leases and lease.record.many)
        line.set_alarm(lease, rest and NOW or nil, true, leases and lease.is_alone)
        return rest
    end
end

local function line_of()
    if not made_line then
        made_line = {}
        line_places(made_line)
        line_joins(made_line)
        line_heads(made_line)
        line_fits(made_line)
        line_alarms(made_line)
        line_grants(made_line)
        line_turns(made_line)
    end
    return made_line
end

-- What every script that may have ended a hold does last. "more" when it must be run again for what is left.
local function lease_close(lease, may_grant)
    local record = lease.record
    if record and record.queue then
        return line_of().turn(lease, may_grant) and 'more' or ''
    end
    return ''
end
