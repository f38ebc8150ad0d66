-- hold.lua - the record of a lease, or of one of many holds, and what it means that a hold is live. It is one
-- text, a field of its stripe's hash; nobody but this file reads or writes it.
--
--   l:NAME            the lease, with its exclusive hold
--   h:NAME/LEASE_ID   one of its many holds: shared, or with a permit. Beside these: pawl:{SS}:x:NAME, a
--                     zset, lease_id -> deadline (or an earlier time, with a session); pawl:{SS}:n:NAME, a hash,
--                     hold -> lease_id and "#TOKEN" -> lease_id
--
-- The text is a row of MessagePack values. These, always all of them, 0 or "" where there is none:
--   state      "held", or how the last hold ended: "released" | "expired" | "forced" | "session" |
--              "store-restarted" | "returned" (a grant that nobody claimed: it never was a hold) | "none"
--              (never granted: somebody waits)
--   token      of the last grant, 0: none   epoch   its   hold   its public name
--   lease_id   of the exclusive hold, or of the last one that ended: its digest, as everywhere in the store
--              (lease/operation.h)
--   deadline   store time (ms): held: its deadline; over: when the lease is forgotten
--   marked, marked_epoch   highest token let through by the gateway, and its epoch
--   due        when the due index has it looked at, never later than the deadline (0: at the deadline). An
--              entry is only brought forward; the sweep sets it anew
--   holder, identity, ttl, granted, holds, meta   of the exclusive hold
--              identity: who began the hold of lease_id, also when it is over (lease/scripts/lib/own_hold.lua);
--              ttl: ms; granted: store time (0: deadline less ttl); holds: how often entered; meta: JSON
--   grant_id   SEQ.N of the grant's item, which is not in the history's list yet, and what only that says (history.lua)
-- and behind them a letter and its value for each that there is:
--   M  many: "shared" | "permits"   N  permits: how many
--   r  last_ended: how the hold of lease_id ended, while others hold; of an exclusive hold that was handed on: how,
--      lease_id, identity and name of the last hold before it, a character 31 between
--   u  last_hold: the name of the last hold, if it is not the one of token
--   c  claim: not claimed yet: the grant was handed on to this inbox, "KEY WID", and goes back at the
--      deadline; "": claimed, and perhaps no answer has named it
--   x  session: key of its record
--   j  delay_ms: lock_delay_ms of the hold   b  delayed_until: store time until which nobody is granted
--   v  void: how it ended, as found by somebody who may not free the lease (hold_void)
--   w  queue: somebody waits in line   a  keys: it has Idempotency-Keys
-- A text that has anything else was written by another release: then the script ends, nothing is cut off.
--
-- A hold is live while NOW < its deadline, with a session while NOW < the session's, and while its epoch is
-- not below ALIVE: a restart of the store that was not proven complete ends all holds of before by raising
-- ALIVE. What finds a hold over says so in the store in that very step, so that what an answer once called
-- over never lives again, whatever the clock does. Marks of before ALIVE are void: they may be too low.

local TOKEN_LAST, NO_MORE = 999999999999999, {}
local HOLD_STATES = { held = 1, released = 1, expired = 1, forced = 1, session = 1, ['store-restarted'] = 1,
    returned = 1, none = 1 }
local HOLD_LETTERS = 'MNrucxjbvwa' -- in this order, of these:
local HOLD_MORE = { 'many', 'permits', 'last_ended', 'last_hold', 'claim', 'session', 'delay_ms',
    'delayed_until', 'void', 'queue', 'keys' }
local HOLD_NUMBER = { permits = true, delay_ms = true, delayed_until = true }

-- All members, so that it never grows, which costs as much as some commands. What a record does not have is
-- false, never nil: nil would lose its place.
local function hold_table()
    return { text = 0, state = 0, token = 0, epoch = 0, hold = 0, lease_id = 0, deadline = 0, marked = 0,
        marked_epoch = 0, due = 0, holder = 0, identity = 0, ttl = 0, granted = 0, holds = 0, meta = 0,
        grant_id = 0, many = 0, permits = 0, last_ended = 0, last_hold = 0, claim = 0, session = 0,
        delay_ms = 0, delayed_until = 0, void = 0, queue = 0, keys = 0, rest = 0, presented = 0,
        session_over = 0, session_ended = 0, stripe = 0, field = 0, held = 0, mode = 0, mark = 0,
        unclaimed = 0, unanswered = 0, left_ms = 0, live = 0, lapsed = 0, ended = 0 }
end
local OWN_TABLE = hold_table() -- that of the call's own lease: one after the other has it

-- The parts behind those that are always there; nil: another release's.
local function hold_letters(one, ...)
    for i = 1, select('#', ...), 2 do
        local letter, value = select(i, ...)
        local member = #letter == 1 and HOLD_MORE[string.find(HOLD_LETTERS, letter, 1, true)]
        if not member or type(value) ~= (HOLD_NUMBER[member] and 'number' or 'string') then
            return nil
        end
        one[member] = value
    end
    return one
end

-- Fills the table with the parts of a text, and empties what comes later; nil: another release's. One member
-- after the other, as in whatever runs often: an assignment of several copies all its values but the last first.
local function hold_parts(one, text, state, token, epoch, hold, lease_id, deadline, marked, marked_epoch, due,
        holder, identity, ttl, granted, holds, meta, grant_id, letter, ...)
    if not (HOLD_STATES[state] and #hold + #lease_id + #holder + #identity + #meta + #grant_id >= 0
        and token >= 0 and epoch >= 0 and deadline >= 0 and marked >= 0 and marked_epoch >= 0 and due >= 0
        and ttl >= 0 and granted >= 0 and holds >= 0) then
        return nil
    end
    one.text = text; one.state = state; one.token = token; one.epoch = epoch; one.hold = hold
    one.lease_id = lease_id; one.deadline = deadline; one.marked = marked; one.marked_epoch = marked_epoch
    one.due = text and (due > 0 and due or deadline); one.holder = holder; one.identity = identity
    one.ttl = ttl > 0 and ttl; one.granted = granted > 0 and granted or deadline - ttl
    one.holds = holds; one.meta = meta; one.grant_id = grant_id
    one.permits = 0; one.delay_ms = 0; one.delayed_until = 0
    one.many = false; one.mode = false; one.rest = false; one.queue = false; one.keys = false
    one.void = false; one.claim = false; one.session = false; one.session_over = false
    one.session_ended = false; one.last_ended = false; one.last_hold = false; one.presented = false
    return letter and hold_letters(one, letter, ...) or not letter and one
end

local function hold_unpack(one, text)
    return hold_parts(one, text, cmsgpack.unpack(text))
end

local function hold_pack(one)
    local due, ttl, granted, deadline = one.due, one.ttl, one.granted, one.deadline
    if not ttl or granted == deadline - ttl then
        granted = 0
    end
    local text = cmsgpack.pack(one.state, one.token, one.epoch, one.hold, one.lease_id, deadline,
        one.marked, one.marked_epoch, due and due ~= deadline and due or 0, one.holder, one.identity,
        ttl or 0, granted, ttl and one.holds or 0, one.meta, one.grant_id)
    local has_more = one.many or one.last_ended or one.last_hold or one.claim or one.session or one.void
        or one.queue or one.keys or one.permits + one.delay_ms + one.delayed_until > 0 -- mostly none
    for i = 1, has_more and #HOLD_MORE or 0 do
        local value = one[HOLD_MORE[i]]
        if value and value ~= 0 then
            text = text .. cmsgpack.pack(string.sub(HOLD_LETTERS, i, i), value)
        end
    end
    return text
end

-- Why a session that stands as live is over, or nil. s: its s, d and e (lease/scripts/lib/session.lua).
local function session_lost(s)
    return tonumber(s[3]) < ALIVE and 'store-restarted' or NOW >= tonumber(s[2]) and 'expired' or nil
end

-- What the parts mean now: held, live; lapsed: it stands as held, but is over; ended: how, also of one that
-- ended before; left_ms; mode; mark; unclaimed: the inbox, or unanswered; session_over, session_ended. many:
-- then live says only that it stands so, and ended, left_ms and lapsed nothing. A hold of a session has the
-- session's deadline (when that is over, the time when it ended), but for a grant that is not claimed yet.
local function hold_judge(record)
    local state, claim, many, how = record.state, record.claim, record.many, nil
    local held = state == 'held'
    record.held = held; record.mode = many or record.mode or 'exclusive'
    record.mark = record.marked_epoch >= ALIVE and record.marked or 0
    record.unclaimed = claim ~= '' and claim; record.unanswered = claim == ''
    if record.session then
        local s = redis.call('HMGET', record.session, 's', 'd', 'e', 'u')
        record.session_over = s[1] ~= 'live' or session_lost(s) ~= nil
        record.session_ended = s[1] ~= 'live'
        how = record.session_over and (s[1] == 'released' and 'released' or 'session') or nil
        if not record.unclaimed then
            record.deadline = tonumber(s[1] == 'live' and s[2] or s[4] or NOW)
        end
    end
    local left_ms = record.deadline - NOW
    if held and not many then
        how = record.void or record.epoch < ALIVE and 'store-restarted' or how
            or left_ms <= 0 and 'expired' or nil
        how = how and record.unclaimed and 'returned' or how
    end
    record.left_ms = left_ms; record.live = held and not how
    record.lapsed = how ~= nil; record.ended = how or state
    return record
end

-- A record that another release wrote, or one above what its stripe has granted, of which the store has lost
-- something: nothing may rest on it. Nothing was written yet, or the outcome is unknown.
local function hold_not_ours(stripe, field)
    error(is_touched and 'PAWL not written by this release: ' .. stripe .. ' ' .. field or NOT_OURS, 0)
end

-- Of a lease of which nothing is known, too: its state is "none", its token 0, and it has no text.
local function hold_new(one, stripe, field, text, epoch, counter)
    local is_sound, record
    if text then
        is_sound, record = pcall(hold_unpack, one, text)
    else
        is_sound = true
        record = hold_parts(one, text, 'none', 0, 0, '', '', 0, 0, 0, 0, '', '', 0, 0, 0, '', '')
    end
    if not (is_sound and record) or record.epoch > epoch
        or record.epoch == epoch and record.token > counter then
        hold_not_ours(stripe, field)
    end
    record.stripe = stripe; record.field = field
    return record
end

-- That of the call's own lease, which is read with the stripe.
local function hold_own()
    own_record = own_record or hold_new(OWN_TABLE, KEYS[1], record_field, STRIPE[4], EPOCH, COUNTER)
    return hold_judge(own_record)
end

-- The record, as it is now. A script has only one table of a record, so one place that writes it writes what
-- all others did, too. into: the table for it, if there is none yet; nobody else gets that one.
local function hold_read(stripe, field, into)
    local is_stripes = stripe == KEYS[1]
    if is_stripes and field == record_field then
        return hold_own()
    end
    local name = stripe .. field
    records = records or {}
    if not records[name] and is_stripes then
        local text = redis.call('HGET', stripe, field)
        local one = hold_new(into or hold_table(), stripe, field, text, EPOCH, COUNTER)
        if into then
            return hold_judge(one)
        end
        records[name] = one
    elseif not records[name] then
        local v = redis.call('HMGET', stripe, field, 'life', 'counter')
        local _, epoch = life_parts(v[2])
        records[name] =
            hold_new(hold_table(), stripe, field, v[1], tonumber(epoch) or 0, tonumber(v[3]) or 0)
    end
    return hold_judge(records[name])
end

-- Writes the record whole, and does not judge it anew. The due index has an entry of a lease that is not
-- later than its deadline.
local function hold_put(record)
    if not (record.due and record.due <= record.deadline)
        and (record == own_record or string.byte(record.field) == 108) then -- l
        touch(record.stripe)
        record.due = record.deadline
        redis.call('ZADD', record.stripe .. ':due', whole(record.due), string.sub(record.field, 3))
    end
    local text = hold_pack(record)
    if text ~= record.text then
        touch(record.stripe)
        redis.call('HSET', record.stripe, record.field, text)
        record.text = text
    end
end

local function hold_write(record)
    hold_put(record)
    hold_judge(record)
end

-- Says for good that the hold is over, without freeing the lease: that is the lease service's.
local function hold_void(record)
    if record.lapsed and not record.void then
        record.void = record.ended
        hold_write(record)
    end
end
