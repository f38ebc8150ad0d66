-- intent.lua - what is being sent to upstreams: the open intents of a stripe, whose turn it is, and how they
-- end.
--
--   pawl:{SS}:i, a zset, every score 0, one member for each open intent, its parts separated by one space:
--     NAME EPOCH TOKEN SEQ STATE KIND GATEWAY INCARNATION ID UNKNOWN AT [LEAPS]
--   EPOCH, TOKEN  15 digits each, SEQ 16, zeros in front: the order of bytes is lease, epoch, token, arrival
--   SEQ      sequence number of the stripe after the script that recorded it
--   STATE    q  waits for its turn; nothing is sent, and nothing is to be before intent_promote.lua says so
--            s  being sent, or about to be
--            u  as s, and its gateway will not learn how it ended
--            d  as s, and its gateway's incarnation is known to be dead, since AT
--   KIND     o  ordered (o+: serial, also among equal tokens)
--            o~  ordered, and perhaps not of one write: it stays open over the writes that one worker sends with
--                this token (intent_check.lua), and ID is the first one's. Of u, and of d if it was u before,
--                behind that the IDs of those whose end is unknown: o~ID,ID; at most 16, then "more"
--            c  conditional: the upstream compares If-Match
--            k  the upstream compares the token   a  admitted
--   GATEWAY, INCARNATION, ID  whose it is, and its number there
--   UNKNOWN  what becomes of it when nobody will learn its end: h  hold   p  probe   g<ms>  grace; and behind @
--            the identity that began the hold, where that is known and one did
--   AT       store time (ms) of the last change of STATE
--   LEAPS    of d only: all leaps of the store's clock until then
--
-- A change of the state is another text in place of the old one. Who knows an intent by an older text finds
-- it by its first four parts and by whose it is.
--
--   pawl:{store}: routes, the hash of the route table that all gateways serve ("" or absent: none yet);
--     leaps, by how many ms the store's clock has leapt forward (shared/member/scripts/heartbeat.lua): a grace
--     counts time that has passed, and in a leap none may have
--   pawl:{store}:doubt, a hash: "GATEWAY INCARNATION" -> "open LIFE" | "dead AT LEAPS LIFE": who may have
--     sent what a store that was not proven complete has forgotten, and has not said yet that all is recorded
--     again; LIFE: no epoch before this one has begun the doubt, and what ended it there does not end it here.
--     The lease services' state directories have it, too (lease/scripts/admit.lua), and get from the store
--     what has been removed here
--   pawl:{store}:given-up, a hash: "GATEWAY INCARNATION ID" -> "lives ASKED" | "silent SINCE ASKED", store time (ms):
--     an operator gives up what that process is sending; it looks, and closes the connection
--     (intent_given_up.lua). given-up in pawl:{store} rises with each one more
--   pawl:{store}:i:GATEWAY, a channel: NAME, or "" for all: it is asked to close what is o~, as soon as nothing
--     of it is under way. A message that is lost costs time: it is said again by who waits, and what is idle
--     is closed anyhow (gateway/forward/admit.c)
local STORE, GIVEN_UP, ASKED = 'pawl:{store}', 'pawl:{store}:given-up', 'pawl:{store}:i:'
local INTENTS_A_WORK = 8
local DOUBT, LOOK_MAX = STORE .. ':doubt', 64

local function intents_of(stripe)
    return stripe .. ':i'
end

-- The table that all gateways serve, "" if none is yet; and the reply to who would serve another one, or nil.
local function routes_served()
    local routes = redis.call('HGET', STORE, 'routes') or ''
    return routes, routes ~= ARGV[7] and routes ~= '' and { 'routes-differ', SEQ, routes } or nil
end

-- Epoch and token that are presented, as a text has them.
local function presented_text()
    return string.format('%015d %015d', PRESENTED_EPOCH, PRESENTED)
end

-- The text of an intent as it stands now; nil: it is not open.
local function intent_find(key, text)
    local head, owner = string.match(text, '^(%S+ %d+ %d+ %d+) %a %S+ (%S+ %S+ %S+) ')
    local found = head and redis.call('ZRANGEBYLEX', key, '[' .. head .. ' ', '(' .. head .. '!') or {}
    for _, one in ipairs(found) do
        if string.match(one, '^%S+ %d+ %d+ %d+ %a %S+ (%S+ %S+ %S+) ') == owner then
            return one
        end
    end
    return nil
end

-- The same intent in another state, from now on. leaps: of state d.
local function intent_as(text, state, leaps)
    local head, rest = string.match(text, '^(%S+ %d+ %d+ %d+) %a (%S+ %S+ %S+ %S+ %S+) ')
    return head .. ' ' .. state .. ' ' .. rest .. ' ' .. whole(NOW) .. (leaps and ' ' .. whole(leaps) or '')
end

-- By how many ms the store's clock has leapt forward: time that may not have passed. A grace does not count
-- it.
local function store_leaps()
    local done = call_table('done')
    done.leaps = done.leaps or tonumber(redis.call('HGET', STORE, 'leaps') or 0)
    return done.leaps
end

-- For how many ms somebody has certainly been dead: the clock may have been stepped by AHEAD_MS before that is
-- noticed as a leap. A record that was made anew begins to count its leaps anew: then all of them may have been
-- since.
local function dead_for(at, leaps)
    local since = store_leaps() - tonumber(leaps)
    return NOW - tonumber(at) - (since < 0 and store_leaps() or since) - AHEAD_MS
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
-- must wait for, or nil; those that it need not wait for and that are to be removed. behind: which texts are
-- not in front any more, as a bound for ZRANGEBYLEX. but: kinds that this one does not wait for. Who keeps
-- one open for later writes is asked to close it.
local function intent_look(own, behind, but)
    local from, first, gone = '[' .. ARGV[1] .. ' ', nil, {}
    repeat
        local list = redis.call('ZRANGEBYLEX', intents_of(KEYS[1]), from, behind, 'LIMIT', 0, LOOK_MAX)
        call_works(math.ceil(#list / INTENTS_A_WORK)) -- batch.lua
        for _, text in ipairs(list) do
            local token, state, kind, gateway, unknown, at, leaps =
                string.match(text, '^%S+ (%d+ %d+) %d+ (%a) (%S+) (%S+) %S+ %S+ (%S+) (%d+) ?(%d*)$')
            local grace = state == 'd' and tonumber(string.match(unknown, '^g(%d+)'))
            local is_cancelled = state == 'q' and token ~= own -- its gateway must not send it any more
            if is_cancelled or grace and leaps ~= '' and dead_for(at, leaps) >= grace then
                gone[#gone + 1] = text
            elseif not string.find(but, string.sub(kind, 1, 1), 1, true) then
                first = first or text
                if state == 's' and kind == 'o~' then
                    redis.call('PUBLISH', ASKED .. gateway, ARGV[1])
                end
            end
        end
        from = '(' .. (list[#list] or '')
    until first or #list < LOOK_MAX
    return first, gone
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

-- Of intent_close.lua: removes those of a list that are open under another text; how many.
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
    call_works(math.ceil(#list / INTENTS_A_WORK)) -- batch.lua
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
