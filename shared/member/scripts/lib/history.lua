-- history.lua - what happened to a lease, kept for those that ask and published to those that listen.
--
--   pawl:{SS}:e:NAME, a list of grants and ends, oldest first; pawl:{SS}:f:NAME, one of refusals, which the
--   gateway writes (a client that hammers it must not push out who held the lease). Both go with the lease.
--   An item is one text, its parts separated by tabs, none of which can stand in them:
--     ID   "EPOCH.SEQ.N": order within a stripe   TYPE   TOKEN   HOLDER   AT (store time, ms)   REASON or ""
--   HOLDER: behind a character 31 (no holder has one) the identity that began the hold, if one did.
--   REASON: behind a character 31 each (no reason has one) what else there is to say, a letter and its value:
--     granted  t ttl_ms   w for how long it waited   m mode, if it is not exclusive
--     an end   r when it was last renewed, t for how long   d lock_delay_ms, if that began   l when, if before AT
--     refused  (gateway/scripts/refusal_note.lua)  c token of the last grant   g id of the gateway
--              i instance of the problem, without "urn:uuid:"   p what was asked for
--   A list that has dropped any begins with the newest that it dropped, a "-" in front: who knows an id can
--   tell whether something is missing behind it.
--   That the line of a lease has changed is published, too: "SS line". Nothing of it is kept.
--   Types: granted | released | expired | forced | session | store-restarted | returned | refused.
--   While somebody listens (lease/scripts/listen.lua) each item is also published, to "pawl:e:NAME", the
--   stripe in front: "SS ITEM".
--   The grant of an exclusive hold stands in its record (hold.lua) and comes into the list with its end: a
--   list costs as much memory as the lease. Behind its id there, grant_id, stands what the record does not say
--   otherwise: w, and t once a renewal has changed the ttl. Of a grant that is in the list or is not noted, w alone.
--   An operator may have less noted (api/cli/scripts/set_history.lua), for all stripes alike.
--   Both stand in listen of the stripe: "UNTIL" or "UNTIL MODE EPOCH.SEQ". UNTIL: store time (ms) until
--   which it is published. MODE: all | ends: of holds alone | off. EPOCH.SEQ: when that began; what was noted
--   before is not shown any more, for what comes behind it may be missing.
local HISTORY_MAX, REFUSALS_MAX, HISTORY_ALL, HISTORY_MIN, HISTORY_LOOK = 32, 16, 16384, 2, 4

-- The store's time.
local function whole_now()
    if now_known ~= NOW then
        now_known, now_text = NOW, whole(NOW)
    end
    return now_text
end

-- Who holds, as items say it.
local function history_holder(hold)
    return hold.identity == '' and hold.holder or hold.holder .. '\31' .. hold.identity
end

-- An item, and its id behind the epoch. token, at: as texts.
local function history_item(epoch, id, kind, token, holder, at, reason)
    return epoch .. '.' .. id .. '\t' .. kind .. '\t' .. token .. '\t' .. holder .. '\t' .. at .. '\t'
        .. reason
end

-- Whether such items are noted; and until when they are published, if they are.
local function history_notes(kind)
    local listened, mode = nil, nil
    if STRIPE[5] then
        listened, mode = string.match(STRIPE[5], '^(%d+) ?(%l*)')
    end
    return not (mode == 'off' or mode == 'ends' and (kind == 'granted' or kind == 'refused')), listened
end

-- Tells those who listen; the id of the item, behind the epoch. nil: it is not to be noted. ttl: of a grant, and
-- what comes behind it in reason.
local function history_tell(stripe, name, kind, token, holder, reason, ttl)
    local notes, listened
    if STRIPE[5] then
        notes, listened = history_notes(kind)
        if not notes then
            return nil
        end
    end
    history_count = history_count + 1
    local id = whole(touch(stripe)) .. (history_count == 1 and '.1' or '.' .. whole(history_count))
    if listened and NOW <= tonumber(listened) then
        reason = ttl and '\31t' .. whole(ttl) .. reason or reason
        redis.call('PUBLISH', 'pawl:e:' .. name, string.sub(stripe, 7, 8) .. ' '
            .. history_item(EPOCH_TEXT, id, kind, whole(token), holder, whole_now(), reason))
    end
    return id
end

-- Tells those who listen that the line has changed.
local function history_line(stripe, name)
    if STRIPE[5] and call_table('done').line ~= name then
        local notes, listened = history_notes('line')
        seldom.done.line = name
        if notes and NOW <= tonumber(listened) then
            redis.call('PUBLISH', 'pawl:e:' .. name, string.sub(stripe, 7, 8) .. ' line')
        end
    end
end

-- The item of the grant that the record of its hold still has, or nil. token: its, as text.
local function history_pending(hold, token)
    local id, more, format = hold.grant_id, '', '%d\t\31t%d'
    local at = string.find(id, '\31', 1, true)
    if id == '' or at == 1 then
        return nil
    elseif at then
        id, more = string.sub(id, 1, at - 1), string.sub(id, at)
        format = string.find(more, '\31t', 1, true) and '%d\t' or format
    end
    local epoch = hold.epoch == EPOCH and EPOCH_TEXT or whole(hold.epoch)
    return epoch .. '.' .. id .. '\tgranted\t' .. token .. '\t' .. history_holder(hold) .. '\t'
        .. string.format(format, hold.granted, hold.ttl or 0) .. more
end

-- The reason of an end, with when the hold was renewed (or claimed) last, and for how long. Through a session nobody renews it.
-- delayed_until: the end of the lock delay that began with the loss, or 0.
local function history_end(hold, reason, delayed_until)
    local at, lost_at = hold.deadline - (hold.ttl or 0), delayed_until - hold.delay_ms
    if hold.ttl and not (hold.session or hold.unclaimed) and at > hold.granted then
        reason = reason .. '\31r' .. whole(at) .. '\31t' .. whole(hold.ttl)
    end
    if delayed_until > 0 then
        local late = lost_at < NOW and '\31l' .. whole(lost_at) or ''
        return reason .. '\31d' .. whole(hold.delay_ms) .. late
    end
    return reason
end

-- stripe: the key of the lease's stripe. list: 'e' or 'f'. hold: with the item of its grant in front, or nil.
local function history_add(stripe, list, name, kind, token, holder, reason, hold)
    local id = history_tell(stripe, name, kind, token, holder, reason)
    if not id then
        return
    end
    token = whole(token)
    local item = history_item(EPOCH_TEXT, id, kind, token, holder, whole_now(), reason)
    local key = stripe .. ':' .. list .. ':' .. name
    local pending = hold and history_pending(hold, token)
    local len = pending and redis.call('RPUSH', key, pending, item) or redis.call('RPUSH', key, item)
    -- In total, too: with many leases in a stripe each keeps less. Looked at now and then: a trim each time
    -- would be another command in the append-only file.
    if len % HISTORY_LOOK < 2 then
        local share = math.floor(HISTORY_ALL / redis.call('ZCARD', stripe .. ':due'))
        local most = list == 'f' and REFUSALS_MAX or HISTORY_MAX
        most = math.max(HISTORY_MIN, math.min(most, share))
        if len > most + 1 + math.max(HISTORY_MIN, most / 4) then -- not at every look
            redis.call('LTRIM', key, -most - 1, -1)
            redis.call('LSET', key, 0, '-' .. redis.call('LINDEX', key, 0))
        end
    end
end
