-- close.lua - intents that end in other ways than most, or whose text was another by then (intent.lua).

-- Removes those of a list that are open under another text; how many.
local function close_changed(key, list)
    local there = 0
    for _, text in ipairs(list) do
        local found = intent_find(key, text)
        there = there + (found and redis.call('ZREM', key, found) or 0)
    end
    return there
end

-- All of a lease up to a bound for ZRANGEBYLEX, whose part that the pattern catches is this one.
local function close_those(key, name, bound, pattern, part)
    local there, list = 0, redis.call('ZRANGEBYLEX', key, '[' .. name .. ' ', bound)
    line_work = line_work + math.ceil(#list / INTENTS_A_WORK) -- batch.lua
    for _, text in ipairs(list) do
        if string.match(text, pattern) == part then
            there = there + redis.call('ZREM', key, text)
        end
    end
    return there
end

-- What the words of intent_close.lua but "close" say; how many were changed.
local function close_as(word, key, text)
    if word == 'forget' then
        local name, owner = string.match(text, '^(%S+) (%S+ %S+ %S+)$')
        return close_those(key, name, '(' .. name .. '!', '^%S+ %d+ %d+ %d+ %a %S+ (%S+ %S+ %S+) ', owner)
    elseif word == 'settle' then
        local head, name, kind = string.match(text, '^((%S+) %d+ %d+) %d+ %a (%S+) ')
        local there = close_changed(key, { text })
        if kind == 'c' then
            there = there + close_those(key, name, '(' .. head, '^%S+ %d+ %d+ %d+ %a (%S+) ', 'c')
        end
        return there
    end
    local found = intent_find(key, text)
    if word == 'unknown' and found and string.match(found, '^%S+ %d+ %d+ %d+ s ') then
        redis.call('ZREM', key, found)
        redis.call('ZADD', key, '0', intent_as(text, 'u')) -- of o~ with more IDs
        return 1
    end
    return 0
end
