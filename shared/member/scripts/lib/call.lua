-- call.lua - what a call knows. All scripts are functions of one library, which is loaded once: a local of a
-- file is the same for every call, but for those that stand here. They are set anew when a call begins, and
-- nothing of it outlives the call, but for LIFE and what that text says, and use_until.

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
local RAW_MS                                                   -- store.lua: Redis' own clock
local REMEMBER_MS                                              -- lease: for how long what is over is known
local PRESENTED, PRESENTED_EPOCH, HOLD, OVER, OWN              -- gateway/scripts/lib/fence.lua
local is_touched, others_touched                               -- sequence numbers that were raised
local history_count, ends_left, line_work, purged              -- how much was done
local ENDS_MAX = 64                                            -- what ends_left begins with (multi_hold.lua)
local clock_known, stream_known, now_known, now_text           -- found out once for a whole batch (batch.lua)
local inboxes, own_record, records, record_field, other_stripes, leaps_known -- what was read
local handed_inbox, handed_word                               -- to whom it handed on last, with which word
local line_told                                                -- the lease whose line was last said to change
local own_inbox, handed                                         -- of a release: its inbox, its grant there
local use_until = {} -- use.lua: kind -> until when it is counted; gone when Redis ends

-- What a call has found out, but what its prelude reads (stripe.lua) and the time and the stream.
local function call_forgets()
    PRESENTED, PRESENTED_EPOCH, HOLD, OVER, OWN = nil, nil, nil, nil, nil
    is_touched, others_touched, inboxes, other_stripes, leaps_known = false, nil, nil, nil, nil
    own_record, records, record_field = nil, nil, nil
    history_count, ends_left, line_work, purged, handed_inbox, handed_word = 0, nil, 0, 0, nil, nil
    own_inbox, handed, line_told = nil, nil, nil
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
