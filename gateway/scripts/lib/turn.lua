-- turn.lua - whose turn it is: what is in the way of a write, or of a fenced read (intent.lua).
local DOUBT, LOOK_MAX = STORE .. ':doubt', 64

-- For how many ms somebody has certainly been dead. A record that was made anew begins to count its leaps
-- anew: then all of them may have been since.
local function dead_for(at, leaps)
    local since = store_leaps() - tonumber(leaps)
    return NOW - tonumber(at) - (since < 0 and store_leaps() or since)
end

-- "GATEWAY INCARNATION" of one who leaves it in doubt whether something older is on its way, or nil.
local function doubt_of(unknown)
    if redis.call('EXISTS', DOUBT) == 0 then
        return nil
    end
    local entries, grace = redis.call('HGETALL', DOUBT), tonumber(string.match(unknown, '^g(%d+)$'))
    for i = 1, #entries, 2 do
        local at, leaps = string.match(entries[i + 1], '^dead (%d+) (%d+) %d+$')
        if not (at and grace and dead_for(at, leaps) >= grace) then
            return entries[i]
        end
    end
    return nil
end

-- What is in front of an intent of this lease with the token that is presented: the text of the first that it
-- must wait for, or nil; those that it need not wait for and that are to be removed; how many of these had
-- their grace. behind: which texts are not in front any more, as a bound for ZRANGEBYLEX. but: kinds that
-- this one does not wait for. Who keeps one open for later writes is asked to close it.
local function intent_look(own, behind, but)
    local from, first, gone, graces = '[' .. ARGV[1] .. ' ', nil, {}, 0
    repeat
        local list = redis.call('ZRANGEBYLEX', intents_of(KEYS[1]), from, behind, 'LIMIT', 0, LOOK_MAX)
        line_work = line_work + math.ceil(#list / INTENTS_A_WORK) -- batch.lua
        for _, text in ipairs(list) do
            local token, state, kind, gateway, unknown, at, leaps =
                string.match(text, '^%S+ (%d+ %d+) %d+ (%a) (%S+) (%S+) %S+ %S+ (%S+) (%d+) ?(%d*)$')
            local grace = state == 'd' and tonumber(string.match(unknown, '^g(%d+)$'))
            if state == 'q' and token ~= own then
                gone[#gone + 1] = text -- cancelled: its gateway must not send it any more
            elseif grace and leaps ~= '' and dead_for(at, leaps) >= grace then
                gone[#gone + 1], graces = text, graces + 1
            elseif not string.find(but, string.sub(kind, 1, 1), 1, true) then
                first = first or text
                if state == 's' and kind == 'o~' then
                    redis.call('PUBLISH', ASKED .. gateway, ARGV[1])
                end
            end
        end
        from = '(' .. (list[#list] or '')
    until first or #list < LOOK_MAX
    return first, gone, graces
end

local function intent_remove(gone)
    for i = 1, #gone, LOOK_MAX do
        touch()
        redis.call('ZREM', intents_of(KEYS[1]), unpack(gone, i, math.min(#gone, i + LOOK_MAX - 1)))
    end
end

-- Which kinds a write does not wait for; nil: it waits for none. A conditional one waits for those that make
-- what was not there: "not there" is a version that comes back (tests/model/conditional.pml).
local function waits_not_for(kind)
    if kind == 'k' or kind == 'a' then
        return nil
    end
    return kind == 'c' and 'cka' or ''
end
