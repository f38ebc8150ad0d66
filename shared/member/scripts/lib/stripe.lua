-- stripe.lua - what every call on a stripe begins with: is this the store that the caller was admitted to,
-- and has it lost nothing that the caller knows of? Then: the stripe's numbers and the store's time.
--   KEYS[1]  the stripe, a hash: epoch seq counter listen (shared/token/keys.h)
--   The last three arguments, OWN_ARGS, which the services add by themselves (shared/member/member.h):
--   ARGV[#ARGV - 2]  "master_replid:REPLID STORE EPOCH": the replication stream that the caller was admitted to,
--                    schema and id of the store, and the epoch that it was admitted in
--   ARGV[#ARGV - 1]  highest sequence number of this stripe that the caller has seen
--   ARGV[#ARGV]      the store's time in ms that the caller knows to have passed, 0: none
--   returns {"not-ours"}: the stripe is missing, another store's, or damaged, or the record of the lease is
--             (hold.lua); nothing is ever created by accident
--           {"clock"}: Redis' clock has jumped ahead of what the caller knows; nothing may rest on that time
--             before a heartbeat has noted it, else it could go back unnoticed
--           {"not-admitted"}: it is ours, but of another epoch, or behind what the caller has seen; or this
--             Redis has begun another stream since: it may be one that has lost what nobody here has seen
--
-- Every other reply is {word, sequence number of the stripe after the script, ...}.
local AHEAD_MS, OWN_ARGS = 2000, 3
local STREAM_LEN = 54 -- what is shorter would be found in more than one

-- What is alike in all stripes, as a rule, is one text, with a blank between its parts: id epoch alive clock
-- ceiling. A part that is missing is "". As texts; none where there is no such text.
local function life_parts(text)
    return string.match(text or '', '^(%S*) (%-?%d*) (%d*) (%-?%d*) (%d*)$')
end

-- Takes it apart; whether all of it is there.
local function life_read(text)
    local id, epoch, alive, clock, ceiling = life_parts(text)
    LIFE, STORE_ID, EPOCH_TEXT = nil, id, epoch
    EPOCH, ALIVE, OFFSET, CEILING = tonumber(epoch), tonumber(alive), tonumber(clock), tonumber(ceiling)
    if not (id and EPOCH and ALIVE and OFFSET and CEILING) then
        return false
    end
    LIFE = text
    return true
end

-- Whether another stripe, with this text, is of the same store and of the same epoch.
local function life_is_same(text)
    local id, epoch = life_parts(text ~= LIFE and text)
    return text == LIFE or id == STORE_ID and epoch == EPOCH_TEXT
end

-- Whether this is a primary that goes on with this replication stream; then it is known (call.lua). It is
-- read in the step that rests on it, and with plain searches: a pattern costs more than Redis' answer. run_id
-- does not tell: a primary that copies another Redis and is promoted again is the same process with another
-- content, but always has a new master_replid (replicationUnsetMaster() in replication.c of Redis 7.0.15).
-- That also changes with redis-cli --rdb, with the first replica and when repl-backlog-ttl is over, where
-- nothing is lost.
local function stream_goes_on(admitted)
    local said = redis.call('INFO', 'replication')
    if #admitted ~= STREAM_LEN or not (string.find(said, '\nrole:master\r', 1, true)
        and string.find(said, admitted, 1, true)) then
        return false
    end
    stream_known = admitted
    return true
end

local function stripe_numbers(seq, counter)
    return seq + 0, counter + 0
end

-- nil: go on; else the reply.
local function stripe_begins()
    local argv, last, field = ARGV, #ARGV, 'l:' .. ARGV[1]
    local v = redis.call('HMGET', KEYS[1], 'life', 'seq', 'counter', field, 'listen')
    record_field, STRIPE = field, v -- of the lease, where that is its name (hold.lua)
    -- Arithmetic makes a number of a text for half of what tonumber() takes, which reads it twice, and fails
    -- where there is none.
    local is_sound, seq, counter = pcall(stripe_numbers, v[2], v[3])
    -- What was taken apart last is known, of both texts.
    if argv[last - 2] ~= ADMITTED then
        ADMITTED = argv[last - 2]
        TO_STREAM, TO_STORE, TO_EPOCH = string.match(ADMITTED, '^(.*) (%S*) (%S*)$')
    end
    if not (is_sound and (v[1] == LIFE or life_read(v[1]))) or STORE_ID ~= TO_STORE or counter < 0 then
        return { 'not-ours' }
    end
    SEQ, COUNTER = seq, counter
    if EPOCH_TEXT ~= TO_EPOCH or seq < argv[last - 1] + 0
        or TO_STREAM ~= stream_known and not stream_goes_on(TO_STREAM) then
        return { 'not-admitted' }
    end
    clock_known = clock_known or clock_ms()
    local known, time = argv[last] + 0, clock_known + OFFSET
    if known > 0 and time > known + AHEAD_MS then
        return { 'clock' }
    end
    NOW = time < known and known or time
    return nil
end

local NOT_OURS = { 'not-ours' } -- also as an error: nothing may rest on a record, and nothing was written yet

local function stripe_runs(run)
    local is_done, reply = pcall(run)
    if is_done or reply == NOT_OURS then
        return reply
    end
    error(reply, 0)
end

-- Raises the sequence number of a stripe, once for a script however much it changes, and returns it. That of
-- the script's own stripe rises in any case: by it the caller knows what a store has lost. By one, not to a
-- value: whatever the append-only file may lose, the number falls short of what was seen.
local function touch(stripe)
    if not is_touched then
        is_touched = true
        SEQ = redis.call('HINCRBY', KEYS[1], 'seq', '1')
    end
    if not stripe or stripe == KEYS[1] then
        return SEQ
    end
    local touched = call_table('touched')
    touched[stripe] = touched[stripe] or redis.call('HINCRBY', stripe, 'seq', '1')
    return touched[stripe]
end
