-- acquire_several.lua - those who wait for several leases at once, all or none.
--
-- In the line of each of its leases such a waiter stands with terms that say only what the line must know:
-- lease_id, hold, holder, identity, since, till, and of more mode, permits, session, inbox, wid, and
--   home  {stripe, name} of its first lease. In pawl:{SS}:w:NAME of that one are two fields more:
--     LEASE_ID/all   its whole terms: with a hundred names they are long, and there would be a hundred
--                    of them
--     LEASE_ID/last  [stripe, name] of the lease that was not to be had when it was last looked at: looked
--                    at first the next time, so that the other ninety-nine need not be

local function all_home(terms)
    local home = terms.more.home
    return home[1] .. ':w:' .. home[2]
end

-- All that one asked for who stands in a line; nil: it waits no more.
function several.full(terms)
    local packed = redis.call('HGET', all_home(terms), terms.lease_id .. '/all')
    local full = packed and cjson.decode(packed)
    return full and full.hold == terms.hold and full or nil
end

function several.forget(terms)
    redis.call('HDEL', all_home(terms), terms.lease_id .. '/all', terms.lease_id .. '/last')
end

-- Takes it out of every line that it stands in, but that of the lease named but, if there is one. In how
-- many it stood; 0: it waits no more.
function several.out(terms, but)
    local full = several.full(terms)
    local list = full and full.more.all or {}
    for _, one in ipairs(list) do
        if one[2] ~= but then
            line.out({ stripe = one[1], name = one[2] }, terms.lease_id)
        end
    end
    if full then
        several.forget(terms)
    end
    return #list
end

-- The same, and those who stood behind it are looked at at once.
function several.drop(terms, but)
    local full, set = several.full(terms), {}
    for _, one in ipairs(full and full.more.all or {}) do
        if one[2] ~= but then
            set[#set + 1], set[#set + 2] = whole(NOW), one[2]
        end
    end
    line.alarms({}, set)
    return several.out(terms, but)
end

local function are_same(list, others)
    local found = {}
    for _, one in ipairs(list) do
        found[one[2]] = true
    end
    for _, one in ipairs(others) do
        if not found[one[2]] then
            return false
        end
    end
    return #list == #others
end

-- Makes room for lease_id in the lines. One that waits there already for these very leases gets a message,
-- and its places are kept; a place in some of the lines only must not be: of two who want the same leases one
-- would be in front here and the other there, for ever. Returns the terms of before, if its
-- places are kept, and whether it had one.
local function supersede(leases, terms)
    local had = false
    for _, lease in ipairs(leases) do
        local before = line.terms(lease, terms.lease_id)
        if before then
            touch(lease.stripe)
            redis.call('PUBLISH', before.more.desk, 'superseded ' .. before.more.wid)
            local full = before.more.home and several.full(before)
            if full and are_same(full.more.all, terms.more.all) then
                several.forget(before)
                return before, true
            end
            if not full or several.drop(before) == 0 then
                line.out(lease, terms.lease_id, before)
                line.set_alarm(lease, NOW)
            end
            had = true
        end
    end
    return nil, had
end

-- Into the lines of all these leases, in this one step.
function several.join(leases, terms)
    local more = terms.more
    local home = { leases[1].stripe, leases[1].name }
    more.home = home
    local before, had = supersede(leases, terms)
    line.times(terms, before)
    local packed = cjson.encode({ lease_id = terms.lease_id, hold = terms.hold, holder = terms.holder,
        identity = terms.identity, since = terms.since, till = terms.till,
        more = { home = home, mode = more.mode, permits = more.permits, session = more.session,
            desk = more.desk, wid = more.wid } })
    local set = {}
    for _, lease in ipairs(leases) do
        local is_first = not lease.record.queue
        line.place(lease, terms.lease_id, packed)
        if is_first then
            -- What it stood in the way of itself is free.
            set[#set + 1], set[#set + 2] = whole(had and NOW or line.due_at(lease)), lease.name
        else
            line.set_alarm(lease)
        end
    end
    line.alarms({}, set)
    redis.call('HSET', all_home(terms), terms.lease_id .. '/all', cjson.encode(terms))
end

-- count: how many leases of its stripe are to be granted.
local function is_free(lease, terms, count)
    local wanting = tokens_wanting(lease.stripe, count)
    if wanting == 'ceiling' then
        line.set_alarm(lease, NOW + 50)
    end
    if wanting then
        return false
    end
    line.settle(lease)
    local head, taken_out = line.first(lease)
    if taken_out > 0 then
        line.set_alarm(lease, NOW) -- for the first one now
    end
    return head and head.hold == terms.hold and line.fits(lease.record, terms)
end

-- How many leases of each stripe stand in a list.
function several.counts(list)
    local counts = {}
    for _, one in ipairs(list) do
        counts[one[1]] = (counts[one[1]] or 0) + 1
    end
    return counts
end

-- Whether the first in line here, if it fits, can have all its leases now: them, and all that it
-- asked for; else nil.
function several.ready(lease, terms)
    local packed = redis.call('HGET', all_home(terms), terms.lease_id .. '/last')
    local last = packed and cjson.decode(packed)
    if last and last[2] ~= lease.name and not is_free(lease_open(last[1], last[2]), terms) then
        return nil
    end
    local full = several.full(terms)
    if not full then
        line.out(lease, terms.lease_id) -- never so by our own scripts
        return nil
    end
    local leases, counts = {}, several.counts(full.more.all)
    line.works(#full.more.all)
    for i, one in ipairs(full.more.all) do
        leases[i] = one[2] == lease.name and lease or lease_open(one[1], one[2])
        if leases[i] ~= lease and not is_free(leases[i], terms, counts[one[1]]) then
            touch(lease.stripe)
            redis.call('HSET', all_home(terms), terms.lease_id .. '/last', cjson.encode(one))
            return nil
        end
    end
    return leases, full
end

-- The leases of a list [[key of the stripe, name], ...], in order, and whether all their stripes are ours.
function several.open(list)
    local leases, are_ours = {}, true
    for i, one in ipairs(list) do
        leases[i] = lease_open(one[1], one[2])
        are_ours = are_ours and tokens_wanting(one[1]) ~= 'not-ours'
    end
    return leases, are_ours
end

-- own_hold.is_anothers() of any of them.
function several.is_anothers(leases, lease_id, asker)
    for _, lease in ipairs(leases) do
        if own_hold.is_anothers(lease, lease_id, asker) then
            return true
        end
    end
    return false
end

-- The reply with a grant of all; holds[i] is that of leases[i].
function several.reply(word, leases, holds)
    local grants = {}
    for i, lease in ipairs(leases) do
        grants[i] = own_hold.reply(lease.name, holds[i])
    end
    return { word, SEQ, grants }
end

-- Of the holds of this lease_id those with this name, holds[i] of leases[i] or nil; how many they are, and
-- whether another request with this lease_id holds one of them, or waits for one.
function several.holds(leases, lease_id, name)
    local holds, count, is_superseded = {}, 0, false
    for i, lease in ipairs(leases) do
        local hold = own_hold.find(lease, lease_id)
        if hold and hold.hold == name and (hold.unclaimed or hold.unanswered) then
            holds[i], count = hold, count + 1
        end
        is_superseded = is_superseded or hold and not holds[i]
    end
    for i = 1, count < #leases and #leases or 0 do
        local terms = leases[i].record.queue and line.terms(leases[i], lease_id)
        is_superseded = is_superseded or terms and terms.hold ~= name
    end
    return holds, count, is_superseded
end

-- What was handed on and is not claimed, or not answered, goes back.
function several.give_back(leases, holds, count)
    line.works(count)
    for i, lease in ipairs(leases) do
        if holds[i] then
            lease_end_hold(lease, holds[i], 'returned', '')
        end
    end
end

-- The last of a script: ends what is over, and hands on what is free. "more" when handoff.lua has something
-- left to do on the first; on the others alarms say so.
function several.close(leases, may_grant)
    local more, set = '', {}
    for i, lease in ipairs(leases) do
        lease_settle(lease)
        local waits = lease.record.queue
        if waits and line.works(0) then
            set[#set + 1], set[#set + 2] = whole(NOW), lease.name
            more = i == 1 and 'more' or more
        elseif waits then
            local left = lease_close(lease, may_grant)
            more = i == 1 and left or more
        end
    end
    line.alarms({}, set)
    return more
end
