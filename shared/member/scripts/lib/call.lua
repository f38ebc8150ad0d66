-- call.lua - what a call knows. All scripts are functions of one library, which is loaded once: a local of a
-- file is the same for every call, but for those that stand here. They are set anew when a call begins, and
-- nothing of it outlives the call, but for LIFE and ADMITTED and what those texts say, and use_until.

-- None of these is there while Redis loads a library; and locals cost less than globals.
local function globals()
    return redis, cjson, cmsgpack, string, table, math, tonumber, ipairs, pairs, next, type, unpack, select,
        pcall, error
end
local redis, cjson, cmsgpack, string, table, math, tonumber, ipairs, pairs, next, type, unpack, select
local pcall, error

local KEYS, ARGV
local FEW_KEYS = { 0, 0, 0 } -- what KEYS is, as a rule: a table for each call would cost as much as a read
local STRIPE, SEQ, COUNTER, NOW                                -- stripe.lua
local LIFE, CEILING, OFFSET, ALIVE, EPOCH, EPOCH_TEXT, STORE_ID -- stripe.lua: LIFE, and what it says
local ADMITTED, TO_STREAM, TO_STORE, TO_EPOCH                  -- stripe.lua: ADMITTED, and what it says
local RAW_MS                                                   -- store.lua: Redis' own clock
local REMEMBER_MS                                              -- lease: for how long what is over is known
local PRESENTED, PRESENTED_EPOCH, HOLD, OVER, OWN              -- gateway/scripts/lib/fence.lua
local is_touched                                               -- the sequence number was raised
local own_record, record_field, records                        -- hold.lua: what was read
local history_count                                            -- how many items it has added
local seldom                                                   -- what few calls have: call_table()
local clock_known, stream_known, now_known, now_text           -- found out once for a whole batch (batch.lua)
local use_until = {} -- use.lua: kind -> until when it is counted; gone when Redis ends

-- What a call has found out, but what its prelude reads (stripe.lua) and the time and the stream.
local function call_forgets()
    PRESENTED, PRESENTED_EPOCH, HOLD, OVER, OWN = nil, nil, nil, nil, nil
    is_touched, history_count, own_record, record_field, records, seldom = false, 0, nil, nil, nil, nil
end

-- A table of what few calls find out or do; mostly there is none to be emptied.
--   touched  numbers of other stripes that were raised   inboxes, stripes  as they were read
--   done     how much: work, purged, ends; and leaps, as read, and line, the last that was said to change
--   handed   to whom it handed on last: inbox and word, or of a release hold, wid, and keep (line.lua)
local function call_table(name)
    seldom = seldom or {}
    seldom[name] = seldom[name] or {}
    return seldom[name]
end

-- Counts work that is bounded; all of it so far.
local function call_works(count)
    local done = call_table('done')
    done.work = (done.work or 0) + count
    return done.work
end

local function call_begins(keys, argv)
    if not redis then
        redis, cjson, cmsgpack, string, table, math, tonumber, ipairs, pairs, next, type, unpack, select,
            pcall, error = globals()
    end
    KEYS, ARGV, REMEMBER_MS = keys, argv, argv[2]
    STRIPE, SEQ, COUNTER, NOW = nil, nil, nil, nil
    RAW_MS, clock_known, stream_known, now_known, now_text = nil, nil, nil, nil, nil
    call_forgets()
end

-- Keys and arguments as C packs them in one text (shared/store/wire.c): the name of the script, how many keys,
-- the keys, the arguments. Returns the name.
local function call_takes(name, count, one, two, three, ...)
    local keys = FEW_KEYS
    keys[1], keys[2], keys[3] = one, nil, nil
    if count == 1 then
        ARGV = { two, three, ... }
    elseif count == 2 then
        keys[2], ARGV = two, { three, ... }
    elseif count == 3 then
        keys[2], keys[3], ARGV = two, three, { ... }
    else
        keys, ARGV = { one, two, three, unpack({ ... }, 1, count - 3) }, { select(count - 2, ...) }
    end
    KEYS, REMEMBER_MS = keys, ARGV[2]
    return name
end

-- A time or a duration as text: Redis would print a Lua number as a floating-point one, at ten times the
-- cost.
local function whole(number)
    return string.format('%d', number)
end

-- Redis' own clock in milliseconds; a test puts another one behind it.
local function clock_ms()
    local now = redis.call('TIME')
    return now[1] * 1000 + math.floor(now[2] / 1000)
end

-- A member whose last heartbeat is so young counts as live. Never a proof of anything.
local FRESH_MS = 10000

-- For how long a member has been silent, by Redis' own clock; at: its last heartbeat. One from the future is
-- no better than one as far in the past.
local function silent_ms(now_ms, at)
    return math.abs(now_ms - (tonumber(at) or 0))
end
