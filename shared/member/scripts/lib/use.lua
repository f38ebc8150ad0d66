-- use.lua - what identities use of what has a quota.
--
--   pawl:{SS}:o  hash  KIND IDENTITY -> how much of it is in this stripe: "h" holds, "s" sessions that live, "b"
--                      bytes that are stored. 0: not there
--
-- Counted in the step in which it begins or ends, where an identity is in the record and somebody looks (use_look.lua):
-- never without --access, nor where nobody has such a quota. And stripe after stripe is counted anew from the records
-- (use_set), all of them at once when somebody looks again, or an epoch has begun: what went wrong does not stay so.
-- What a restart has ended (its epoch is below ALIVE) is not counted then, nor taken away when its record says so, which
-- may be as late as its deadline. No sequence number tells of it: what a store loses of this is found again.

local USE_LOOKED_MS = 60000

-- Somebody looks at these kinds: true if nobody did until now, so that what is there was not counted.
local function use_looked(kinds)
    local is_new = false
    for kind in string.gmatch(kinds, '.') do
        is_new = is_new or NOW >= (use_until[kind] or 0)
        use_until[kind] = NOW + USE_LOOKED_MS
    end
    return is_new
end

local function use_count(stripe, kind, identity, by)
    if NOW < (use_until[kind] or 0) and redis.pcall('HINCRBY', stripe .. ':o', kind .. identity, by) == 0 then
        redis.call('HDEL', stripe .. ':o', kind .. identity)
    end
end

-- Adds to counts, a table KIND IDENTITY -> number.
local function use_add(counts, kind, identity, by)
    counts[kind .. identity] = (counts[kind .. identity] or 0) + by
end

-- What was counted of this stripe, of kinds, a set of letters: how much of it was kept otherwise.
local function use_set(kinds, counts)
    local key, wrong = KEYS[1] .. ':o', 0
    local kept = redis.pcall('HGETALL', key)
    if kept.err then -- somebody else's
        redis.call('DEL', key)
    end
    for i = 1, #kept, 2 do
        local field = kept[i]
        if string.find(kinds, string.sub(field, 1, 1), 1, true) then
            if not counts[field] then
                redis.call('HDEL', key, field)
                wrong = wrong + 1
            elseif kept[i + 1] == whole(counts[field]) then
                counts[field] = nil
            end
        end
    end
    for field, number in pairs(counts) do
        redis.call('HSET', key, field, whole(number))
        wrong = wrong + 1
    end
    return { 'counted', SEQ, wrong }
end
