-- line.lua - those who wait for a lease, first come, first served.
--
--   pawl:{SS}:q:NAME  zset  lease_id -> ticket: the stripe's sequence number when it joined
--   pawl:{SS}:w:NAME  hash  lease_id -> its terms as JSON (grant.lua), for as long as it waits
--   pawl:{SS}:p:NAME  zset  lease_id -> store time until which its place is kept, of those whose connection is
--                           over
--   pawl:{SS}:d:ID    hash  an inbox: one worker of one lease service, where waiters' clients stand
--                           at: store time when it last said that it lives (lease/scripts/inbox_heartbeat.lua)
--   pawl:{store}:alarm zset NAME -> store time at which a lease in whose line somebody waits must be looked
--                           at: all services watch it
--
-- A script that frees a lease hands it on: to the first in line whose inbox lives. The grant is
-- unclaimed until the inbox has claimed it, and no answer names it; after CLAIM_MS it goes on to the next. A
-- inbox gets a message in the channel of its key's name: "granted WID" or "superseded WID".
--
-- A release names the inbox of the worker that sent it. If who is first stands there, it is granted at once
-- for its whole ttl, claimed and unanswered (hold.lua), and the reply carries the grant: no message, no
-- claim. Not one that has a session, shares, or waits for several, nor one with a longer ttl than
-- HANDED_TTL_MAX: a worker that dies between the grant and its answer costs others so much at most.
--
-- Somebody who waits for several leases stands in the line of each, from one step on, so that of two who want
-- the same ones one is in front of the other everywhere; nothing is granted before all can be, in one step
-- (acquire_several.lua). Until then who is first keeps those behind it waiting: that is what first come,
-- first served means.
--
-- A place of one that asked so (keep) outlives its connection: for that long since its client left, or since
-- its inbox lived last. It is not passed over, but never granted in a release's step: it is offered the lease,
-- for CLAIM_MS, and then gone. The same lease_id takes its place up again, at whatever inbox. At most KEPT_MAX
-- places of a lease are kept for clients that left.
--
-- A script does a bounded amount of work, whatever stands in the lines: PURGE_MAX are taken out, and when
-- WORK_MAX holds were ended or granted, or leases looked at for all or none, nothing more is begun. What is
-- left is somebody's at once: its alarm says so.
local ALARM, PURGE_MAX, WORK_MAX, HANDED_TTL_MAX = 'pawl:{store}:alarm', 1000, 64, 60000
local KEPT_MAX, TOLD_MAX = 1000, 100
local INBOX_MS, PLACE_MS_MAX = 3000, 60000 -- PLACE_MS_MAX: for how long a place may be kept
local line, several = {}, {} -- each needs the other: those of several are in acquire_several.lua

-- Store time until which an inbox is taken to live. at: as read, false: there is no such inbox.
local function inbox_lives_until(at)
    return at and at + INBOX_MS or 0
end

local function queue_of(lease)
    return lease.stripe .. ':q:' .. lease.name
end

local function waiters_of(lease)
    return lease.stripe .. ':w:' .. lease.name
end

local function kept_of(lease)
    return lease.stripe .. ':p:' .. lease.name
end

-- Notes so much work; whether it is enough.
function line.works(count)
    return call_works(count) >= WORK_MAX
end

-- The terms of lease_id, if it waits.
function line.terms(lease, lease_id)
    local packed = redis.call('HGET', waiters_of(lease), lease_id)
    return packed and cjson.decode(packed) or nil
end

-- What anybody may know of the first in line: {{holder, identity or "", mode, since when it waits, until when at
-- most (store time; 0: not said)}, ...}.
function line.told(lease)
    local ids = lease.record.queue and redis.call('ZRANGE', queue_of(lease), 0, TOLD_MAX - 1) or {}
    local packed, told = #ids > 0 and redis.call('HMGET', waiters_of(lease), unpack(ids)) or {}, {}
    for i, lease_id in ipairs(ids) do
        local terms = packed[i] and cjson.decode(packed[i]) or { more = NO_MORE }
        local kept = terms.more.keep and redis.call('ZSCORE', kept_of(lease), lease_id)
        told[i] = { terms.holder or '', terms.identity or '', terms.more.mode or 'exclusive',
            terms.since or NOW, tonumber(kept or terms.till) or 0 }
    end
    return told
end

-- Since when it waits, also in its place of before, and until when at most.
function line.times(terms, before)
    terms.since = before and before.since or NOW
    terms.till, terms.more.wait = terms.more.wait and NOW + terms.more.wait, nil
end

function line.is_empty(lease)
    return redis.call('EXISTS', queue_of(lease)) == 0
end

-- terms: its terms, if they are known.
function line.out(lease, lease_id, terms)
    touch(lease.stripe)
    history_line(lease.stripe, lease.name)
    redis.call('ZREM', queue_of(lease), lease_id)
    redis.call('HDEL', waiters_of(lease), lease_id)
    if terms and terms.more.keep then
        redis.call('ZREM', kept_of(lease), lease_id)
    end
end

-- Takes out whose places were kept long enough, some at a time; when the next one is, or nil.
function line.forget(lease)
    local key = kept_of(lease)
    local over = redis.call('ZRANGEBYSCORE', key, '-inf', NOW, 'LIMIT', 0, WORK_MAX)
    for _, lease_id in ipairs(over) do
        line.out(lease, lease_id)
    end
    if #over > 0 then
        redis.call('ZREM', key, unpack(over))
    end
    return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end

-- Its client has left: its place is kept for so long. false: it asked for none, there are too many, or its
-- place was kept before, and that is over.
function line.keep(lease, terms)
    if not terms.more.keep then
        return false
    end
    line.forget(lease)
    if redis.call('ZCARD', kept_of(lease)) >= KEPT_MAX
        or not redis.call('ZSCORE', queue_of(lease), terms.lease_id) then
        return false
    end
    touch(lease.stripe)
    history_line(lease.stripe, lease.name)
    redis.call('ZADD', kept_of(lease), whole(NOW + terms.more.keep), terms.lease_id)
    line.set_alarm(lease, NOW + terms.more.keep)
    return true
end

-- Whether it is not passed over: its inbox lives, or its place is kept (is_kept).
function line.stands(lease, terms)
    local inbox, keep = terms.more.desk, terms.more.keep
    local until_ms = keep and tonumber(redis.call('ZSCORE', kept_of(lease), terms.lease_id)) or nil
    if keep and not (until_ms or line.lives(inbox)) then
        until_ms = line.lives_until(inbox) + keep
    end
    terms.is_kept = until_ms ~= nil
    if until_ms then
        return NOW < until_ms
    end
    return line.lives(inbox)
end

-- At the end of the line, or in the place that lease_id has there already.
function line.place(lease, lease_id, packed)
    local record = lease.record
    history_line(lease.stripe, lease.name)
    redis.call('ZADD', queue_of(lease), 'NX', touch(lease.stripe), lease_id)
    redis.call('HSET', waiters_of(lease), lease_id, packed)
    if not record.text then
        record.epoch, record.deadline = EPOCH, NOW + REMEMBER_MS
    end
    record.queue = '1'
    hold_write(record)
end

-- In its place, and the inbox of before gets a message. before: its terms there, if it has one.
function line.join(lease, terms, before)
    touch(lease.stripe)
    if before then
        redis.call('PUBLISH', before.more.desk, 'superseded ' .. before.more.wid)
    end
    if before and before.more.keep then
        redis.call('ZREM', kept_of(lease), terms.lease_id)
    end
    if before and before.more.home then
        several.drop(before, lease.name)
    end
    line.times(terms, before)
    line.place(lease, terms.lease_id, cjson.encode(terms))
    line.set_alarm(lease, before and NOW or nil) -- what fits now may not be what fitted before
end

-- In its place, at another inbox.
function line.move(lease, terms, inbox, wid)
    terms.more.desk, terms.more.wid = inbox, wid
    line.place(lease, terms.lease_id, cjson.encode(terms))
end

-- Store time until which the inbox is taken to live.
function line.lives_until(inbox)
    local inboxes = call_table('inboxes')
    inboxes[inbox] = inboxes[inbox] or inbox_lives_until(redis.call('HGET', inbox, 'at'))
    return inboxes[inbox]
end

function line.lives(inbox)
    return NOW <= line.lives_until(inbox)
end

-- The terms of the first in line who is not passed over, and how many in front of it were taken out. nil:
-- nobody is, or not yet.
function line.first(lease)
    local done = call_table('done')
    local before = done.purged or 0
    done.purged = before
    while done.purged < PURGE_MAX do
        local ids = redis.call('ZRANGE', queue_of(lease), 0, 1)
        local lease_id = ids[1]
        local terms = lease_id and line.terms(lease, lease_id)
        lease.is_alone = not ids[2]
        if not lease_id then
            break
        end
        if terms and line.stands(lease, terms) then
            local s = terms.more.session and redis.call('HMGET', terms.more.session, 's', 'd', 'e')
            if not s or s[1] == 'live' and not session_lost(s) then
                return terms, done.purged - before
            end
            touch(lease.stripe)
            redis.call('PUBLISH', terms.more.desk, 'session-lost ' .. terms.more.wid)
        end
        local lines = terms and terms.more.home and several.drop(terms) or 0
        if lines == 0 then
            line.out(lease, lease_id, terms)
        end
        done.purged = done.purged + math.max(lines, 1)
    end
    return nil, done.purged - before
end

-- Whether these terms go together with what holds now.
function line.fits(record, terms)
    if record.delayed_until > NOW then
        return false
    end
    if record.many then
        local more = terms.more or NO_MORE
        if record.mode ~= more.mode or record.rest then
            return false
        end
        return record.mode == 'shared' or (record.permits == more.permits and
            redis.call('ZCARD', record.stripe .. ':x:' .. string.sub(record.field, 3)) < record.permits)
    end
    return not record.held
end

-- Ends what is over.
function line.settle(lease)
    local looked, ended = lease_settle(lease)
    if looked > 0 then
        line.works(looked)
    end
    if ended > 0 and lease.record.queue then
        line.set_alarm(lease, NOW) -- of a session that was ended: its alarm may be far away
    end
end

-- When the lease must be looked at, if nothing happens before.
function line.due_at(lease)
    local record = lease.record
    local at = lease.look_at or NOW + 1000 -- perhaps who is first has died
    if record.held and not record.many then
        at = record.deadline
    elseif record.delayed_until > NOW then
        at = math.min(at, record.delayed_until)
    elseif tokens_wanting(lease.stripe) == 'ceiling' then
        at = NOW + 50
    elseif record.many then
        at = math.min(at, tonumber(redis.call('ZRANGE', multi.index(lease), 0, 0, 'WITHSCORES')[2]))
    end
    return at
end

-- Has the lease looked at when it is due, or at the time given; an earlier alarm stays, but one that has
-- rung, if it was looked at just now.
-- is_empty: of the line, if it is known.
function line.set_alarm(lease, at, is_looked_at, is_empty)
    if is_empty == nil then
        is_empty = line.is_empty(lease)
    end
    if is_empty then
        touch(lease.stripe)
        redis.call('ZREM', ALARM, lease.name)
        if lease.record.queue then
            lease.record.queue = false
            hold_write(lease.record)
        end
        return
    end
    at = at or line.due_at(lease)
    local set = tonumber(redis.call('ZSCORE', ALARM, lease.name))
    if not set or set > at or is_looked_at and set <= NOW then
        touch(lease.stripe) -- one that rings too early finds nothing to do
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

-- The leases that are to be granted to who is first, and all that it asked for; else nil.
function line.ready(lease, terms, may_grant)
    if may_grant ~= 'grant' or tokens_wanting(lease.stripe) or not line.fits(lease.record, terms) then
        return nil
    end
    if not terms.more.home then
        return { lease }, terms
    end
    local leases, full = several.ready(lease, terms)
    -- Whatever frees the others looks at them: here it matters only whether it still lives.
    lease.look_at = not leases and line.lives_until(terms.more.desk) + 1 or false
    return leases, full
end

-- Whether these terms are granted in the step of a release from this inbox.
function line.is_here(terms, inbox)
    local more = terms.more
    return more.desk == inbox and not (terms.is_kept or more.home or more.session or more.mode)
        and tonumber(terms.ttl) + (more.delay or 0) <= HANDED_TTL_MAX
end

function line.hand_on(lease, leases, terms, own_inbox)
    local inbox, wid, is_here = terms.more.desk, terms.more.wid, line.is_here(terms, own_inbox)
    local off, set, lines = {}, {}, {}
    for _, one in ipairs(leases) do
        if one.is_alone then
            history_line(one.stripe, one.name)
            for _, key in ipairs({ queue_of(one), waiters_of(one), kept_of(one) }) do
                lines[#lines + 1] = key
            end
            one.record.queue = false
        else
            line.out(one, terms.lease_id, terms)
        end
        grant(one, terms, is_here and '' or inbox .. ' ' .. wid)
        if one ~= lease and one.is_alone then
            off[#off + 1] = one.name
        elseif one ~= lease then -- those behind may go together with it there too
            set[#set + 1], set[#set + 2] = whole(terms.more.mode and NOW or terms.deadline), one.name
        end
    end
    if #lines > 0 then
        redis.call('DEL', unpack(lines))
    end
    if terms.more.home then
        line.alarms(off, set)
        several.forget(terms)
    end
    line.works(#leases)
    local handed = call_table('handed')
    if is_here then
        handed.hold, handed.wid, handed.keep = lease.record, wid, terms.more.keep or 0
        return
    end
    handed.inbox, handed.word = inbox, 'granted ' .. wid
    redis.call('PUBLISH', inbox, handed.word)
end

-- Hands on to the first in line, and to those behind that go together with it; says whether there may be
-- more to do. may_grant: the caller's word, as in acquire.lua. own_inbox: of a release: where it came from.
-- Afterwards the record is as it is.
function line.turn(lease, may_grant, own_inbox)
    local rest, leases, full
    repeat
        lease.look_at, leases = false, nil
        line.settle(lease)
        local terms = line.first(lease)
        rest = lease.record.rest or not terms and not line.is_empty(lease) or terms and line.works(0)
        if terms and not rest then
            leases, full = line.ready(lease, terms, may_grant)
        end
        if leases then
            line.hand_on(lease, leases, full, own_inbox)
        end
    until not (leases and lease.record.many)
    line.set_alarm(lease, rest and NOW or nil, true, leases and lease.is_alone)
    return rest
end

-- What every script that may have ended a hold does last. "more" when it must be run again for what is left.
local function lease_close(lease, may_grant, own_inbox)
    if lease.record.queue then
        return line.turn(lease, may_grant, own_inbox) and 'more' or ''
    end
    return ''
end
