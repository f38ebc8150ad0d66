-- store.lua - the store as a whole: its record and its 256 stripes, for the scripts by which services join,
-- report, admit and leave. They run on one Redis; a Redis Cluster will need them one slot at a time.
--   KEYS[1]  pawl:{store}, the record: id epoch run roll time alive clock ceiling gate gaterun why how open,
--   and perhaps access leaps routes given-up (gateway/scripts/lib/intent.lua) lost (gateway/scripts/lib/marks.lua)
--   registrars: how many there are to be, and their ids   majority: "1" when a majority of them counts
--   before: the lease services that an operator's recover has found alive, behind how many of them could admit
--   what was there before
--   of a store with an in-sync set: copies insync needed growing changed gone syncs ballot (insync.lua)
--   (the keys of stripes and members are made here; shared/token/keys.h names them all)
local SCHEMA = '11:' -- as KEYS_SCHEMA in shared/token/keys.h
local STRIPES, TOLERATED_MS = 256, 50
local MEMBERS, DOUBT = 'pawl:{store}:members', 'pawl:{store}:doubt'
local DOUBTS_MAX, EVERYBODY = 256, 'whichever_it_was whichever_it_was'

-- string.format() would make one anew each time, and is not there while Redis loads the library.
local function stripe_keys()
    local keys, digits = {}, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 'a', 'b', 'c', 'd', 'e', 'f', [0] = 0 }
    for i = 0, STRIPES - 1 do
        keys[i] = 'pawl:{' .. digits[(i - i % 16) / 16] .. digits[i % 16] .. '}'
    end
    return keys
end
local STRIPE_KEYS = stripe_keys()

local function stripe_key(i)
    return STRIPE_KEYS[i]
end

local function member_key(id)
    return KEYS[1] .. ':m:' .. id
end

-- "RUN_ID REPLID": which Redis this is, and which replication stream it goes on with (stripe.lua): what an
-- admission is for. nil on a replica: nothing is admitted on one. Without a run_id it is asked.
local function redis_run(run_id)
    run_id = run_id or string.match(redis.call('INFO', 'server'), '\nrun_id:(%x+)')
    local replid = string.match(redis.call('INFO', 'replication'), '\nrole:master.-\nmaster_replid:(%x+)')
    return replid and run_id .. ' ' .. replid or nil
end

-- What life_parts() takes apart.
local function life_text(id, epoch, alive, clock, ceiling)
    return id .. ' ' .. epoch .. ' ' .. alive .. ' ' .. clock .. ' ' .. ceiling
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
-- counter and ceiling, the highest epoch as an absolute number, how many are shut (the epoch is negative),
-- whether each is sound and all agree.
local function stripes_read()
    local all = { seq = {}, counter = {}, epoch = 0, alive = 0, clock = 0, ceiling = 0, sound = true }
    local seqs, counters, top, there, shut = all.seq, all.counter, 0, 0, 0
    local before, epoch, first_epoch, first_ceiling
    RAW_MS = clock_ms()
    for i = 0, STRIPES - 1 do
        local v = redis.call('HMGET', STRIPE_KEYS[i], 'seq', 'counter', 'life')
        local seq, counter = tonumber(v[1]), tonumber(v[2])
        if not (seq and counter and counter >= 0) then
            all.sound = false
        end
        seqs[i], counters[i] = seq or 0, counter or 0
        if counter and counter > top then
            top = counter
        end
        -- The rest of all stripes is the same, as a rule: then nothing of it is news.
        if v[3] ~= before then
            local its_id, its_epoch, alive, clock, ceiling = life_parts(v[3])
            epoch = tonumber(its_epoch)
            all.id = all.id or its_id ~= '' and its_id or nil
            first_epoch, first_ceiling = first_epoch or its_epoch, first_ceiling or ceiling
            all.sound = all.sound and tonumber(ceiling) and tonumber(clock) and tonumber(alive) and epoch
                and its_id == all.id and its_epoch == first_epoch
            all.ceilings_differ = all.ceilings_differ or ceiling ~= first_ceiling
            all.epoch = math.max(all.epoch, math.abs(epoch or 0))
            all.alive = math.max(all.alive, tonumber(alive) or 0)
            all.clock = math.max(all.clock, tonumber(clock) or 0)
            all.ceiling = math.max(all.ceiling, tonumber(ceiling) or 0)
            before = v[3]
        end
        local old = not v[3] and redis.call('HGET', STRIPE_KEYS[i], 'id') -- of another schema
        all.id = all.id or old or nil
        there = (v[3] or old or seq or counter) and there + 1 or there
        shut = (epoch or 0) < 0 and shut + 1 or shut
    end
    all.sound, all.top, all.there, all.shut = all.sound and true or false, top, there, shut
    return all
end

-- A node of a quorum is no store, and not empty: "STORE/NUMBER/COUNT" (lease/quorum/scripts/lib/node.lua).
local function node_id()
    local id = redis.pcall('HGET', 'pawl:{node}', 'id')
    return type(id) == 'string' and id or nil
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
    store.id = store.id or stripes.id or stripes.there == 0 and node_id() or nil
    store.epoch = math.max(store.epoch or 0, stripes.epoch)
    store.roll, store.time, store.ceiling = store.roll or 0, store.time or 0, store.ceiling or 0
    store.alive = math.max(store.alive or 0, stripes.alive)
    store.clock = math.max(store.clock or 0, stripes.clock)
    return store
end

-- The record, the stripes, and what is answered if it is not a store that this release knows, or not this one.
local function store_known(identity)
    local stripes = stripes_read()
    local store = store_read(stripes)
    if not store.id and stripes.there == 0 then
        return store, stripes, { 'empty' }
    end
    local is_known = store.id == (identity or store.id) and string.sub(store.id or '', 1, #SCHEMA) == SCHEMA
    return store, stripes, not is_known and { 'another', store.id or '' } or nil
end

-- Whether calls are let in, and this Redis goes on with what was admitted.
local function store_serves(store)
    return not store.gate and store.sound and store.run == redis_run()
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

-- The registrars in a text "COUNT ID ...": how many of them are a majority, their ids, and each id in a set.
-- COUNT 0, or no text: there are none, and all lease services count.
local function registrars_of(text)
    local count, ids, is = 0, {}, {}
    for word in string.gmatch(text or '', '%S+') do
        if count == 0 then
            count = tonumber(word) or 0
        else
            ids[#ids + 1], is[word] = word, true
        end
    end
    return { count = count, most = math.floor(math.max(count, #ids) / 2) + 1, ids = ids, is = is }
end

-- The highest number that a majority of the registrars has reached, of those that are in (and this one): what
-- they have recorded stays recorded, also while they are silent. nil: too few are in.
local function registrars_reached(registrars, all, field, also)
    local numbers = {}
    for _, id in ipairs(registrars.ids) do
        local counts = all[id] and (all[id].state == 'in' or id == also)
        numbers[#numbers + 1] = counts and tonumber(all[id][field]) or nil
    end
    table.sort(numbers)
    return numbers[#numbers - registrars.most + 1]
end

-- Sets fields of all stripes in this very step.
local function stripes_set(...)
    for i = 0, STRIPES - 1 do
        redis.call('HSET', stripe_key(i), ...)
    end
end

-- Sets a part of what is alike in all of them (life_text()): its number. The others stay in each as they are.
local function stripes_change(part, value)
    for i = 0, STRIPES - 1 do
        local parts = { life_parts(redis.call('HGET', stripe_key(i), 'life')) }
        parts = #parts > 0 and parts or { '', '', '', '', '' }
        parts[part] = value
        redis.call('HSET', stripe_key(i), 'life', life_text(unpack(parts)))
    end
end
local LIFE_EPOCH, LIFE_CLOCK, LIFE_CEILING = 2, 4, 5

-- Nobody may act on this Redis, run, before it is admitted by the name of this gating.
local function gate_shut(store, why, name, run)
    redis.call('HSET', KEYS[1], 'gate', name, 'gaterun', run or '', 'why', why,
        'epoch', whole(store.epoch), 'id', store.id, 'behind', '')
    stripes_change(LIFE_EPOCH, whole(-store.epoch))
    store.gate, store.why, store.ballot, store.behind = name, why, nil, ''
end

-- above: a roll that must be passed, if there is one.
local function members_changed(store, above)
    store.roll = math.max(store.roll, above or 0) + 1
    redis.call('HSET', KEYS[1], 'roll', store.roll)
    return store.roll
end

-- What is called in the epoch of before is refused from now on; all but one take this one with their next heartbeat, and
-- holds live on.
local function epoch_raise(store, all, ids, but)
    local before = store.epoch
    store.epoch = before + 1
    stripes_change(LIFE_EPOCH, whole(store.epoch))
    redis.call('HSET', KEYS[1], 'epoch', whole(store.epoch))
    for _, id in ipairs(ids) do
        if id ~= but and tonumber(all[id].epoch) == before then
            all[id].epoch = whole(store.epoch)
            redis.call('HSET', member_key(id), 'epoch', all[id].epoch)
        end
    end
end

-- Who is in doubt (gateway/scripts/lib/intent.lua): {"GATEWAY INCARNATION" = the epoch that began it}. What
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

-- What state directories keep: {"lease ID INCARNATION" | "gateway ID INCARNATION", ..., the registrars, if a
-- majority of them counts, with the roll and the floor that each was last heard of with, the in-sync set, and the doubts}.
local function members_list(store, all, ids)
    local list = {}
    for _, id in ipairs(ids) do
        if all[id] and all[id].state ~= 'forgotten' then
            list[#list + 1] = all[id].role .. ' ' .. id .. ' ' .. (all[id].incarnation or '----------------')
        end
    end
    for _, id in ipairs(store.majority == '1' and registrars_of(store.registrars).ids or {}) do
        local one = all[id] or {}
        list[#list + 1] = 'registrar ' .. id .. ' ' .. (one.roll or 0) .. ' ' .. (one.floor or 0)
    end
    list[#list + 1] = store.insync and 'insync ' .. store.insync or nil
    for _, line in ipairs(doubts_list(doubts_read())) do
        list[#list + 1] = line
    end
    return list
end
