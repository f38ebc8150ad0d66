-- own_hold.lua - the lease of a call, and the hold that its lease_id has: found, renewed, or how it ended.
--
-- A lease, as these files hand it on: {stripe = key of its stripe, name = , record = as hold_read() read it}.
--
-- A hold, a place in line and a session have the identity of who began them, or "": nobody's, or of a service
-- without --access. Services with it add who asks to the arguments of whatever acts for one of these (asker);
-- "": nobody. What is another's is answered {"not-yours", seq} before anything of it is said; what is nobody's
-- is anybody's. Without that argument nothing is compared.
local own_hold = {}

local function lease_open(stripe, name)
    return { stripe = stripe, name = name, record = hold_read(stripe, 'l:' .. name) }
end

-- That of the call itself: one after the other has the table. look_at, is_alone: line.lua
local OWN_LEASE = { stripe = 0, name = 0, record = 0, look_at = 0, is_alone = 0 }
local function lease_own()
    local lease = OWN_LEASE
    lease.stripe = KEYS[1]; lease.name = ARGV[1]; lease.record = hold_own()
    lease.look_at = false; lease.is_alone = false
    return lease
end

-- The hold of this lease_id, if it is live: the record, or the one of many.
function own_hold.find(lease, lease_id)
    local hold = lease.record
    if hold.many then
        hold = multi.read(lease, lease_id)
    end
    return hold.live and hold.lease_id == lease_id and hold or nil
end

-- How the last hold ended, if it was this lease_id's, and its name; nil: it was not, or it never was a hold. Also
-- the last one before a hold that was handed on: its lease_id may ask again. One of many that is over may not have
-- been taken out yet: it is now.
function own_hold.ended(lease, lease_id)
    local record = lease.record
    if record.many then
        local hold = multi.read(lease, lease_id)
        if hold.lapsed then
            multi.end_one(lease, hold, hold.ended, '')
        end
    end
    if record.lease_id ~= lease_id then
        local how, id, _, name = hold_before(record)
        return id == lease_id and how or nil, name
    end
    local how = record.many and record.last_ended or (not record.held and record.ended)
    return how ~= 'returned' and how or nil, record.last_hold or record.hold
end

function own_hold.reply(word, hold, holds)
    local reply = { word, SEQ, hold.token, hold.epoch, hold.hold, hold.holder, hold.ttl, hold.left_ms,
        holds or hold.holds, hold.meta, hold.mode }
    if hold.identity ~= '' then
        reply[12] = hold.identity
    end
    return reply
end

local function is_foreign(identity, asker)
    return identity ~= '' and identity ~= asker
end

-- Whether this lease_id is in other hands than those of who asks: of its hold, also the last one, or of its
-- place in line.
function own_hold.is_anothers(lease, lease_id, asker)
    local record = lease.record
    local one = record.many and multi.read(lease, lease_id)
    local terms = record.queue and line.terms(lease, lease_id)
    local _, id, identity
    if record.last_ended then
        _, id, identity = hold_before(record)
    end
    return id == lease_id and is_foreign(identity, asker)
        or record.lease_id == lease_id and is_foreign(record.identity, asker)
        or one and is_foreign(one.identity, asker) or terms and is_foreign(terms.identity or '', asker)
end

-- The lease of a call, without its record, if this lease_id has nothing of it: no hold, also not the last one,
-- and no place in line; else nil. The same is asked of each lease, and the record is not read: the time that
-- it takes must not tell whether others hold it.
function own_hold.strange(lease_id)
    if string.find(STRIPE[4] or '', lease_id, 1, true) then
        return nil
    end
    local lease = { stripe = KEYS[1], name = ARGV[1] }
    local one = redis.call('HGET', KEYS[1], 'h:' .. ARGV[1] .. '/' .. lease_id)
    return not (line.terms(lease, lease_id) or one) and lease or nil
end

-- An answer names this hold: from now on it is nobody's to give back (lease/scripts/leave.lua).
function own_hold.answered(hold)
    if hold.unanswered then
        hold.claim = false
        hold_write(hold)
    end
end

-- Of a hold that is live and stays so: nothing else of it is judged anew.
local function set_deadline(lease, hold, deadline)
    hold.deadline, hold.left_ms = deadline, deadline - NOW
    hold_put(hold)
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
        local id = hold.grant_id
        if ttl_ms ~= hold.ttl and id ~= '' and not string.find(id, '\31t', 1, true) then
            hold.grant_id = id .. '\31t' .. whole(hold.ttl) -- that of the grant (history.lua)
        end
        hold.ttl = ttl_ms
        set_deadline(lease, hold, NOW + ttl_ms)
    end
end

-- The answer to a call that found no hold, or another than this one ("": any): {"lost", seq, how it ended, or
-- "unknown"}; and whether more of the line is to be done.
function own_hold.lost(lease, lease_id, hold, may_grant)
    lease_settle(lease)
    local how, name = own_hold.ended(lease, lease_id) -- may end one: before the hand-off
    if not how or hold ~= '' and hold ~= name then
        how = 'unknown'
    end
    local more = lease_close(lease, may_grant)
    return { 'lost', SEQ, how }, more
end
