-- marks.lua - the check `mark`, and which of the two checks a script goes by: plain fencing by what was let
-- through, for gateways whose store is not that of the leases.
--   ARGV[6]  "live" | "mark" | "mark STORE": whose tokens, if not those of this store; of stored resources and the check
--            endpoint the same stands behind the mode, ARGV[5], and a line feed, if it is not "live"
--
--   pawl:{SS}:marks, a hash: NAME -> "EPOCH TOKEN HOLD", the highest exclusive token that was let through, or
--     "EPOCH TOKEN HOLD EPOCH TOKEN": and a shared one above it, which has read; "0 0 -": none yet
--   "" -> "EPOCH TOKEN", the floor: marks up to it may have been dropped, so all below it is stale, but for the last
--     grant of a lease of this store. Of its own tokens there is one from the first on that goes by `mark`: from then on
--     what goes by `live` is kept here, too
--   pawl:{SS}:marks:STORE, the same of another store
-- Nothing of it is ever forgotten, but that the lowest are dropped into the floor when there are too many.
--
-- When this store has lost content, marks may be too low, or missing. For its own tokens its first epoch
-- since then (ALIVE) stands for them all. The epochs of another store are numbers of another line, so for
-- those somebody has to look there (api/cli/scripts/marks.lua):
--   pawl:{store}: lost, the epoch that began without proof of being complete ("" or absent: none ever did)
--   pawl:{store}:marks, a hash: STORE -> "LOST EPOCH TOKEN": since then nothing below this is let through;
--     "0 0 0": a gateway has a route for it, and nothing was named (gateways_in_doubt.lua)
local MARKS_MAX, MARKS_KEPT, MARKS_DROPPED_AT_ONCE = 4096, 3584, 256

local function mark_read(text)
    local epoch, token, hold, shared_epoch, shared = string.match(text, '^(%d+) (%d+) (%S+) ?(%d*) ?(%d*)$')
    return { epoch = tonumber(epoch), token = tonumber(token), hold = hold,
        shared_epoch = tonumber(shared_epoch) or 0, shared = tonumber(shared) or 0 }
end

-- (epoch, token) of whichever was higher, the exclusive one or the shared one.
local function mark_top(one)
    if above(one.shared_epoch, one.shared, one.epoch, one.token) then
        return one.shared_epoch, one.shared
    end
    return one.epoch, one.token
end

-- (epoch, token) of the so-many-th from below.
local function marks_quantile(list, place)
    local by_epoch, epochs = {}, {}
    for _, one in ipairs(list) do
        if not by_epoch[one.top_epoch] then
            by_epoch[one.top_epoch] = {}
            epochs[#epochs + 1] = one.top_epoch
        end
        table.insert(by_epoch[one.top_epoch], one.top)
    end
    table.sort(epochs)
    for _, epoch in ipairs(epochs) do
        local tokens = by_epoch[epoch]
        if place <= #tokens then
            table.sort(tokens)
            return epoch, tokens[place]
        end
        place = place - #tokens
    end
end

-- Drops the lowest; below the highest of them all is stale from now on. That is never lowered: what goes by `live` may be
-- below it.
local function marks_thin(key)
    local flat, list, dropped, floor_epoch, floor = redis.call('HGETALL', key), {}, {}, '0', '0'
    for i = 1, #flat, 2 do
        if flat[i] == '' then
            floor_epoch, floor = string.match(flat[i + 1], '^(%d+) (%d+)$')
        else
            local one = mark_read(flat[i + 1])
            one.name = flat[i]
            one.top_epoch, one.top = mark_top(one)
            list[#list + 1] = one
        end
    end
    local epoch, token = marks_quantile(list, #list - MARKS_KEPT)
    for _, one in ipairs(list) do
        if not above(one.top_epoch, one.top, epoch, token) then
            dropped[#dropped + 1] = one.name
        end
    end
    if above(epoch, token, tonumber(floor_epoch), tonumber(floor)) then
        redis.call('HSET', key, '', whole(epoch) .. ' ' .. whole(token))
    end
    for i = 1, #dropped, MARKS_DROPPED_AT_ONCE do
        redis.call('HDEL', key, unpack(dropped, i, math.min(#dropped, i + MARKS_DROPPED_AT_ONCE - 1)))
    end
end

-- Sets what is known since this store has lost the marks of another: the operator's word is a floor, without
-- it nothing is known.
local function mark_after_loss(record, of)
    local lost = redis.call('HGET', 'pawl:{store}', 'lost') or ''
    if lost == '' then
        return
    end
    local word = redis.call('HGET', 'pawl:{store}:marks', of) or ''
    local since, epoch, token = string.match(word, '^(%d+) (%d+) (%d+)$')
    record.lost = since ~= lost
    if not record.lost and above(tonumber(epoch), tonumber(token), record.floor_epoch, record.floor) then
        record.floor_epoch, record.floor = tonumber(epoch), tonumber(token)
    end
end

local function mark_reasons(check, is_exclusive, of)
    -- What was let through for the lease, also by the check `live`.
    function check.read()
        fence_begin()
        local v = redis.call('HMGET', check.marks, ARGV[1], '')
        local record = mark_read(v[1] or '0 0 -')
        local floor_epoch, floor = string.match(v[2] or '0 0', '^(%d+) (%d+)$')
        record.floor_epoch, record.floor = tonumber(floor_epoch), tonumber(floor)
        record.is_first = not of and not v[2]
        record.top_epoch, record.mark = mark_top(record)
        local live = hold_read(KEYS[1], 'l:' .. ARGV[1])
        record.is_last = not of and live.epoch == PRESENTED_EPOCH and live.token == PRESENTED
        record.live_epoch, record.live = of and 0 or live.marked_epoch, of and 0 or live.marked
        if of then
            mark_after_loss(record, of)
        end
        return record
    end

    function check.reason(record, deed)
        local function is_below(epoch, token)
            return above(epoch, token, PRESENTED_EPOCH, PRESENTED)
        end
        if not is_exclusive and deed ~= 'read' then
            return 'wrong-mode'
        elseif not of and (PRESENTED_EPOCH > EPOCH or PRESENTED > CEILING) then
            return 'unissued-token' -- a mark above both would shut out the next grants
        elseif is_below(record.floor_epoch, record.floor) and not record.is_last
            or is_below(record.epoch, record.token)
            or is_exclusive and (is_below(record.shared_epoch, record.shared)
            or is_below(record.live_epoch, record.live)) then -- of a release that kept none here
            return 'stale-token'
        end
        local is_its = record.epoch == PRESENTED_EPOCH and record.token == PRESENTED
        local is_shared = record.shared_epoch == PRESENTED_EPOCH and record.shared == PRESENTED
        if is_its and (record.hold ~= HOLD or not is_exclusive) or is_shared and is_exclusive then
            return 'unissued-token' -- the number alone, under another hold's name
        elseif not of and PRESENTED_EPOCH < ALIVE then
            return OVER
        end
        -- What went by `live` before the first that goes by `mark` is not kept.
        local is_unknown = record.is_first and not record.is_last and is_below(EPOCH, COUNTER)
        return record.lost and 'marks-lost' or is_unknown and 'stale-token' or nil
    end

    -- It is not noted in the lease's history, of which this store may know nothing.
    function check.refuse(record, reason)
        return { 'refused', SEQ, reason, record.mark, record.top_epoch, record.mark, '' }
    end
end

local function mark_passes(check, is_exclusive)
    function check.pass(record)
        local key, text = check.marks, nil
        if record.is_first then
            touch()
            redis.call('HSET', key, '', whole(EPOCH) .. ' ' .. whole(COUNTER))
        end
        if is_exclusive and above(PRESENTED_EPOCH, PRESENTED, record.epoch, record.token) then
            text = string.format('%d %d %s', PRESENTED_EPOCH, PRESENTED, HOLD)
        elseif not is_exclusive and above(PRESENTED_EPOCH, PRESENTED, mark_top(record)) then
            text = string.format('%d %d %s %d %d', record.epoch, record.token, record.hold, PRESENTED_EPOCH,
                PRESENTED)
        end
        if text then
            touch()
            record.mark = PRESENTED
            if redis.call('HSET', key, ARGV[1], text) == 1 and redis.call('HLEN', key) > MARKS_MAX + 1 then
                marks_thin(key)
            end
        end
        return record.mark
    end
end

-- What goes by the check `live`: raises the mark to the token that was let through, unless a later one that shares the
-- lease was before it; the mark. Where the lease is known by mark, or any is, that is raised as well: the lease's own
-- record is forgotten some time after its end, and what goes by mark may lead to it then.
local function live_pass(record)
    if above(PRESENTED_EPOCH, PRESENTED, record.marked_epoch, record.mark) then
        local own = { marks = KEYS[1] .. ':marks' }
        local v = redis.pcall('HMGET', own.marks, ARGV[1], '')
        local text = v[1] or v[2] and '0 0 -'
        if text then
            mark_passes(own, string.find(ARGV[5], '^exclusive') ~= nil)
            own.pass(mark_read(text))
        end
        record.marked, record.marked_epoch = PRESENTED, PRESENTED_EPOCH
        hold_write(record)
    end
    return record.mark
end

-- {read() -> record, reason(record, deed) -> nil or why not, refuse(record, reason) -> reply, pass(record) ->
-- mark}: as those of fence.lua.
local CHECK_LIVE = { read = fence_read, reason = fence_reason, refuse = fence_refuse, pass = live_pass }
local function check_by(word)
    if word == 'live' then
        return CHECK_LIVE
    end
    local of, is_exclusive = string.match(word, '^mark (.+)$'), ARGV[5] == 'exclusive'
    if of == string.match(STORE_ID, ':(.*)$') then
        of = nil
    end
    local check = { of = of, marks = KEYS[1] .. ':marks' .. (of and ':' .. of or '') }
    mark_reasons(check, is_exclusive, of)
    mark_passes(check, is_exclusive)
    return check
end

local function check_of()
    return check_by(ARGV[6])
end

local function check_of_stored()
    if ARGV[5] == 'exclusive' then
        return CHECK_LIVE -- as a rule
    end
    local mode, word = string.match(ARGV[5], '^([^\n]+)\n(.+)$')
    ARGV[5] = mode or ARGV[5]
    return check_by(word or 'live')
end
