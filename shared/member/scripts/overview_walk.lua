-- overview_walk.lua - what stands in a stripe, counted, and what of it is worth a look, a bounded number at a time.
-- Changes nothing.
--   KEYS[1]  stripe
--   ARGV[1]  what to go on behind, or "": the beginning of the stripe
--   returns  {"walked", seq, what to go on behind, or "": the stripe is done,
--             held, who wait, delayed, sessions that live, writes in doubt, last token granted in the stripe,
--             {kind, lease, holder or "", ms, code or "", ...}}
--             ms: refused: how long ago; waiting: for how long the first one has waited, 0: not known; delayed: for
--             how long nobody is granted; in-doubt: since its gateway cannot tell the end, or what it last said;
--             code: the gateway that is not there any more, or is silent
--
-- First the open intents in their order ("i" and the last of them), then what stands in the due index: of a small one by
-- name ("n" and the last), since ZSCAN would show it whole, else by the cursor of ZSCAN ("d" and that), which shows
-- whatever stands there throughout at least once.
local STEP, SMALL, LINES_MAX, RECENT_MS = 32, 128, 16, 600000
local REFUSED = '^[^\t]*\trefused\t%d+\t([^\t\31]*)[^\t]*\t(%d+)\t([%l-]+)'
local phase, from = string.match(ARGV[1], '^(.)(.*)$')
local held, waiting, delayed, sessions, doubts, lines, look = 0, 0, 0, 0, 0, 0, {}

local function add(kind, name, holder, ms, code)
    local at = #look
    look[at + 1], look[at + 2], look[at + 3], look[at + 4], look[at + 5] = kind, name, holder, ms, code or ''
end

-- The last refusal, if it was lately (lib/history.lua).
local function look_at_refusal(name, record)
    local last = redis.pcall('LINDEX', KEYS[1] .. ':f:' .. name, -1)
    local holder, at, code = string.match(type(last) == 'string' and last or '', REFUSED)
    if at and NOW - at < RECENT_MS then
        add('refused', name, holder ~= '' and holder or record.live and record.holder or '', NOW - at, code)
    end
end

local function look_at_line(name)
    waiting = waiting + redis.call('ZCARD', KEYS[1] .. ':q:' .. name)
    lines = lines + 1
    local first = lines <= LINES_MAX and redis.call('ZRANGE', KEYS[1] .. ':q:' .. name, 0, 0)[1]
    local packed = first and redis.call('HGET', KEYS[1] .. ':w:' .. name, first)
    if packed then
        local terms = cjson.decode(packed)
        add('waiting', name, terms.holder or '', terms.since and NOW - terms.since or 0)
    end
end

local function look_at(name)
    if string.sub(name, 1, 3) == ':s:' then
        local s = redis.call('HMGET', KEYS[1] .. name, 's', 'd', 'e')
        sessions = sessions + (s[1] == 'live' and not session_lost(s) and 1 or 0)
    elseif string.sub(name, 1, 1) ~= ':' then
        local record = hold_read(KEYS[1], 'l:' .. name)
        if record.live then
            held = held + 1
        elseif record.delayed_until > NOW then
            delayed = delayed + 1
            add('delayed', name, '', record.delayed_until - NOW)
        end
        if record.queue then
            look_at_line(name)
        end
        look_at_refusal(name, record)
    end
end

local function try(name)
    if not pcall(look_at, name) then
        records, record_field = nil, nil -- what cannot be read is in no state
    end
end

local function by_cursor()
    local found = redis.call('ZSCAN', KEYS[1] .. ':due', from, 'COUNT', STEP)
    for i = 1, #found[2], 2 do
        try(found[2][i])
    end
    return found[1] ~= '0' and 'd' .. found[1] or ''
end

local function by_name()
    if from == '' and redis.call('ZCARD', KEYS[1] .. ':due') > SMALL then
        from = '0'
        return by_cursor()
    end
    local names, all = {}, redis.call('ZRANGE', KEYS[1] .. ':due', 0, -1)
    for _, name in ipairs(all) do
        names[#names + 1] = name > from and name or nil
    end
    table.sort(names)
    for i = 1, math.min(STEP, #names) do
        try(names[i])
    end
    return names[STEP + 1] and 'n' .. names[STEP] or ''
end

-- Whether the process that had it under way is a member, and heard; a guess, on which nothing rests.
local lives = {}
local function is_there(gateway, incarnation)
    local who = gateway .. ' ' .. incarnation
    if lives[who] == nil then
        local member = redis.pcall('HMGET', 'pawl:{store}:m:' .. gateway, 'incarnation', 'at', 'state')
        lives[who] = member[1] == incarnation and member[3] ~= 'forgotten'
            and silent_ms(clock_ms(), member[2]) <= FRESH_MS
    end
    return lives[who]
end

local function intents()
    local key, begin = KEYS[1] .. ':i', from and '(' .. from or '-'
    local texts = redis.call('ZRANGEBYLEX', key, begin, '+', 'LIMIT', 0, STEP)
    for _, text in ipairs(texts) do
        local name, state, gateway, incarnation, at =
            string.match(text, '^(%S+) %d+ %d+ %d+ (%a) %S+ (%S+) (%S+) %S+ %S+ (%d+)')
        local is_gone = (state == 's' or state == 'q') and not is_there(gateway, incarnation)
        if state == 'u' or state == 'd' or is_gone then
            doubts = doubts + 1
            add('in-doubt', name, '', math.max(0, NOW - at), is_gone and gateway)
        end
    end
    if texts[STEP] then
        return 'i' .. texts[STEP]
    end
    from = ''
    return by_name()
end

local behind = (phase == 'd' and by_cursor or phase == 'n' and by_name or intents)()
return { 'walked', SEQ, behind, held, waiting, delayed, sessions, doubts, COUNTER, look }
