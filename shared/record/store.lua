-- store.lua - the store as a whole: its record and its 256 stripes, for the scripts by which services join,
-- report, admit and leave. They run on one Redis; a Redis Cluster will need them one slot at a time.
--   KEYS[1]  pawl:{store}, the record: id epoch run roll time alive clock ceiling gate gaterun why how open,
--   and perhaps leaps routes (gateway/scripts/lib/intent.lua) lost (gateway/scripts/lib/marks.lua)
--   (the keys of stripes and members are made here; shared/record/keys.h names them all)
local SCHEMA = '5:' -- as KEYS_SCHEMA in shared/record/keys.h
local STRIPES, TOKEN_LAST, TOLERATED_MS = 256, 999999999999999, 50
local RAW_MS = clock_ms()
local MEMBERS, DOUBT = KEYS[1] .. ':members', KEYS[1] .. ':doubt'
local DOUBTS_MAX, EVERYBODY = 256, 'whichever_it_was whichever_it_was'

local function whole(number)
    return string.format('%d', number)
end

local function stripe_key(i)
    return string.format('pawl:{%02x}', i)
end

local function member_key(id)
    return KEYS[1] .. ':m:' .. id
end

-- A hash as a table.
local function hash_read(key)
    local flat, found = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do
        found[flat[i]] = flat[i + 1]
    end
    return found
end

-- The 256 stripes: seq and counter of each, and of all: the identity (of the first that has one), the highest
-- counter, the highest epoch as an absolute number, how many are shut (the epoch is negative), whether each
-- is sound and all agree.
local function stripes_read()
    local all = { seq = {}, counter = {}, top = 0, epoch = 0, alive = 0, clock = 0, shut = 0, there = 0,
        sound = true }
    local first, ceiling
    for i = 0, STRIPES - 1 do
        local key = stripe_key(i)
        local v = redis.call('HMGET', key, 'seq', 'counter', 'ceiling', 'clock', 'alive', 'epoch', 'id')
        local seq, counter, epoch = tonumber(v[1]), tonumber(v[2]), tonumber(v[6])
        local sound = seq and counter and counter >= 0 and tonumber(v[3]) and tonumber(v[4])
            and tonumber(v[5]) and epoch
        all.there = all.there + ((v[7] or seq or counter or epoch) and 1 or 0)
        all.id = all.id or v[7] or nil
        first = first or v[6]
        all.sound = all.sound and sound and v[7] == all.id and v[6] == first and true or false
        all.seq[i], all.counter[i] = seq or 0, counter or 0
        all.top = math.max(all.top, counter or 0)
        all.ceilings_differ = all.ceilings_differ or (ceiling and v[3] ~= ceiling)
        ceiling = v[3]
        all.epoch = math.max(all.epoch, math.abs(epoch or 0))
        all.shut = all.shut + ((epoch or 0) < 0 and 1 or 0)
        all.alive = math.max(all.alive, tonumber(v[5]) or 0)
        all.clock = math.max(all.clock, tonumber(v[4]) or 0)
    end
    return all
end

-- The record, with numbers as numbers; sound: it is whole, and agrees with the stripes.
local function store_read(stripes)
    local store = hash_read(KEYS[1])
    for _, field in ipairs({ 'epoch', 'roll', 'time', 'alive', 'clock', 'ceiling' }) do
        store[field] = tonumber(store[field])
    end
    store.gate = store.gate and store.gate ~= '' and store.gate or nil
    store.sound = stripes.sound and store.id == stripes.id and store.epoch and store.roll and store.time
        and store.alive and store.clock and store.ceiling and store.run and store.epoch > 0
        and store.epoch == stripes.epoch and stripes.shut == (store.gate and STRIPES or 0) and true or false
    store.id = store.id or stripes.id
    store.epoch = math.max(store.epoch or 0, stripes.epoch)
    store.roll, store.time, store.ceiling = store.roll or 0, store.time or 0, store.ceiling or 0
    store.alive = math.max(store.alive or 0, stripes.alive)
    store.clock = math.max(store.clock or 0, stripes.clock)
    return store
end

-- All members: {id = {field = text}}, and their ids in order.
local function members_read()
    local ids, all = redis.call('SMEMBERS', MEMBERS), {}
    table.sort(ids)
    for _, id in ipairs(ids) do
        all[id] = hash_read(member_key(id))
    end
    return all, ids
end

local function member_drop(id)
    redis.call('DEL', member_key(id))
    redis.call('SREM', MEMBERS, id)
end

-- What rests on it is only whose floor the ceiling waits for.
local function is_fresh(member)
    return silent_ms(RAW_MS, member.at) <= FRESH_MS
end

local function is_live_lease(member)
    return member.role == 'lease' and member.state == 'in' and is_fresh(member)
end

-- Sets fields of all stripes in this very step.
local function stripes_set(...)
    for i = 0, STRIPES - 1 do
        redis.call('HSET', stripe_key(i), ...)
    end
end

-- above: a roll that must be passed, if there is one.
local function roll_up(store, above)
    store.roll = math.max(store.roll, above or 0) + 1
    redis.call('HSET', KEYS[1], 'roll', store.roll)
    return store.roll
end

-- Who is in doubt (gateway/scripts/lib/intent.lua): {"GATEWAY INCARNATION" = the life that began it}. What
-- nobody can read stands for everybody.
local function doubts_read()
    local lives = {}
    for entry, state in pairs(hash_read(DOUBT)) do
        local name = string.match(entry, '^[%w_-]+ [%w_-]+$') or EVERYBODY
        lives[name] = math.max(lives[name] or 0, tonumber(string.match(state, ' (%d+)$')) or 0)
    end
    return lives
end

-- As state directories keep them, DOUBTS_MAX at most: an entry for everybody stands for the rest.
local function doubts_list(lives)
    local names, list, last, top = {}, {}, lives[EVERYBODY], 0
    for name, life in pairs(lives) do
        names[#names + 1] = name ~= EVERYBODY and name or nil
        top = math.max(top, life)
    end
    table.sort(names)
    for i = 1, math.min(#names, DOUBTS_MAX - 1) do
        list[i] = 'doubt ' .. names[i] .. ' ' .. whole(lives[names[i]])
    end
    if last or #names >= DOUBTS_MAX then
        list[#list + 1] = 'doubt ' .. EVERYBODY .. ' ' .. whole(#names >= DOUBTS_MAX and top or last)
    end
    return list
end

-- What state directories keep: {"lease ID INCARNATION" | "gateway ID INCARNATION", ..., and the doubts}.
local function members_list(all, ids)
    local list = {}
    for _, id in ipairs(ids) do
        if all[id] and all[id].state ~= 'forgotten' then
            list[#list + 1] = all[id].role .. ' ' .. id .. ' ' .. (all[id].incarnation or '----------------')
        end
    end
    for _, line in ipairs(doubts_list(doubts_read())) do
        list[#list + 1] = line
    end
    return list
end
