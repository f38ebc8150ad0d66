-- heartbeat.lua - a process makes itself known to the store, or once more; sees whether the store has lost
-- anything; joins, takes its place, or leaves its report for the one that admits.
-- on: store
-- flags: allow-oom
--   KEYS[1]   pawl:{store}
--   ARGV[1]   "SCHEMA:ID" that the process knows, or "": whichever is there
--   ARGV[2]   run_id of the Redis on this link
--   ARGV[3]   member id   ARGV[4]  "lease" | "gateway"   ARGV[5]  incarnation
--   ARGV[6]   epoch that the process was admitted in, 0: none
--   ARGV[7]   how many of its heartbeats of this epoch were answered with "in"
--   ARGV[8]   floor that its state directory has recorded, 0: none
--   ARGV[9]   roll of the list that its state directory has recorded
--   ARGV[10]  how many tokens to reserve ahead, 1 to 10^12
--   ARGV[11]  the store's time in ms that the process knows to have passed, 0: none
--   ARGV[12]  who it is, for people
--   ARGV[13]  a random name for the gating, should there be one
--   ARGV[14]  highest seq seen in each stripe in that epoch, 256 numbers with a blank between; "" without one
--   ARGV[15]  highest token let through (gateway)   ARGV[16]  "doubt" if the store was seen unsafe, else ""
--   ARGV[17]  the list of members and doubts that its state directory has recorded, comma between
--   ARGV[18]  "settled" when nothing of a former link can still arrive, so that a report is whole; else ""
--   ARGV[19]  highest epoch that its state directory has recorded, 0: none
--   ARGV[20]  highest token that it has granted in each stripe in its epoch, as ARGV[14]; "": it grants none
--   ARGV[21]  "judges" with --access, "open" with --allow-anonymous, else ""
--   ARGV[22]  its version, for how many ms it runs, what is the matter with it (code) or ""   ARGV[23]  what it adds to a bar (lib/bars.lua), or ""
--   ARGV[24]  "EPOCH GATE" that its state directory has promised (gated, below), or ""
--   ARGV[25]  --copies of this process, or nothing: as the store has it; "s" behind it: the store must have been made with it
--   ARGV[26]  of a lease service "host:port" of this Redis   ARGV[27]  its wish (insync_change() in lib/insync.lua), or ""
--   ARGV[28]  with the lease on the epoch (docs/decisions/0050): the number of this heartbeat of this incarnation; else ""
--   ARGV[29]  a lease service: which heartbeats it has read of, "ID INCARNATION NUMBER", comma between; or ""
--   ARGV[30]  and for how many ms it has sent no such list   ARGV[31]  its own address on this link, or ""
--   returns {"empty"}: no store at all
--           {"another", schema and id of the one that is here}
--           {"open"}: a service with --access has used this store, and this one would let everybody in
--           {"superseded"}: another process has this member id   {"forgotten"}: pawl store forget
--           {"copies", how many nodes must have a copy, or ""}: and this process has another number
--           {"gated", epoch, gate, why, ballot, behind}: nobody may act; reported if there was a report. ballot: of a store with
--             an in-sync set, the epoch that would begin: a lease service reports when its state directory has promised
--             to act in no older one   behind: as lease/scripts/admit.lua has it, or ""
--           {"unsettled"}: it may join when nothing of a former epoch is under way any more
--           {"pending", epoch, id, roll, goal, time, members}: not yet in every state directory, or not yet
--             vouched for
--           {"in", epoch, id, roll, goal, time, members, beats, ceiling, corrected_ms, {256 seqs},
--              bytes in use, maxmemory, replid of the stream that is admitted, how many registrars there are,
--              and the ids of those that are not live, a blank between; 0, "": all lease services count,
--              {copies, syncs, node that is being added, nodes, perhaps "-" and one that is forgotten} (insync_told()), {}: there is no in-sync set;
--              with ARGV[28]: the list for ARGV[29]; the last of this process's heartbeats that enough others have read of}
--             roll, members: the list to record   goal: the floor to record   time: the store's, ms
local ROLE, RUN, ID, INCARNATION = ARGV[4], redis_run(ARGV[2]), ARGV[3], ARGV[5]
local MY_EPOCH, MY_BEATS, MY_FLOOR = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local MY_VERSION, BLOCK, AT_LEAST = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local MY_WATER, LEAP_MS = tonumber(ARGV[19]), 2000
local MY_SET, PROMISED, PROMISED_GATE = insync_listed(ARGV[17]), string.match(ARGV[24], '^(%d+) (%S+)$')
PROMISED = tonumber(PROMISED) or 0
local NUMBER, MY_DOUBT = ARGV[28] or '', 0 -- the highest epoch of one
for life in string.gmatch(ARGV[17], 'doubt %S+ %S+ (%d+)') do
    MY_DOUBT = math.max(MY_DOUBT, tonumber(life))
end
local RECORDED = MY_SET and whole(MY_SET.epoch) .. ' ' .. whole(MY_SET.generation) or ''

-- Whether any of these numbers, one for each stripe, is above the stripe's.
local function is_ahead(text, of_stripes)
    local i = 0
    for number in string.gmatch(text, '%d+') do
        if number + 0 > of_stripes[i] then
            return true
        end
        i = i + 1
    end
    return false
end

-- Whether this process knows of more than the store has.
local function is_behind(store, stripes, me)
    if MY_WATER > store.epoch or (MY_WATER == store.epoch and MY_VERSION > store.roll) then
        return true -- its state directory has seen this epoch when it was older
    end
    local set = insync_read(store.insync)
    if set and (PROMISED > set.epoch or insync_is_newer(MY_SET, set)) then
        return true -- or promised to act in no epoch as old as this one
    end
    if MY_DOUBT > store.epoch then
        return true -- or a later one begin: what this epoch knows of its doubts is not for that directory
    end
    if MY_EPOCH ~= store.epoch or me.state == 'forgotten' then
        return MY_EPOCH > store.epoch
    end
    local lost_a_beat = me.incarnation == INCARNATION and tonumber(me.beats) < MY_BEATS
    return not me.incarnation or lost_a_beat or is_ahead(ARGV[14], stripes.seq)
        or is_ahead(ARGV[20], stripes.counter)
end

local function members_are_whole(all, ids)
    for _, id in ipairs(ids) do
        local one = all[id]
        if not (one.role and one.incarnation and one.state and tonumber(one.epoch) and tonumber(one.beats)
            and tonumber(one.floor) and tonumber(one.roll) and tonumber(one.since)) then
            return false
        end
    end
    return true
end

-- nil, or why the gate must be shut (anew): nobody may act on this store before it is admitted. A gating
-- belongs to the Redis and the stream that it was made on: what was reported to it may be of another past.
-- Shutting hides what was damaged, so that it was damaged is kept.
local function gate_reason(store, stripes, me, members_whole)
    if store.gate and store.gaterun == RUN and stripes.shut == STRIPES then
        return nil
    elseif store.gate and (store.why == 'empty' or store.why == 'damaged') then
        return store.why
    elseif not store.sound or not (store.gate or members_whole) then
        return 'damaged'
    elseif store.gate or store.run ~= RUN then
        return 'restarted'
    end
    return is_behind(store, stripes, me) and 'behind' or nil
end

-- The highest epoch that this process knows of, but for what it knows of this very gate.
local function highest_known(store)
    local most = math.max(MY_WATER, MY_EPOCH, PROMISED_GATE ~= store.gate and PROMISED or 0,
        MY_DOUBT - 1) -- which may be of an epoch that was about to begin
    if MY_SET and not (MY_SET.epoch == store.ballot and MY_SET.stream == string.match(RUN or '', '%S+$')) then
        most = math.max(most, MY_SET.epoch)
    end
    return most
end

-- Of a store with an in-sync set: the epoch that would begin is chosen when the gate is shut, and above all that are
-- reported to it: else it is shut anew. So no two gates, be they on two nodes, are admitted with one epoch.
local function ballot_chosen(store)
    local set = insync_read(store.insync)
    store.ballot = tonumber(store.ballot)
    if not set or (store.ballot and highest_known(store) < store.ballot) then
        return
    end
    if store.ballot then
        gate_shut(store, store.why, ARGV[13], RUN)
    end
    store.ballot = math.max(store.epoch, set.epoch, highest_known(store), math.floor(RAW_MS / 1000) - 1) + 1
    redis.call('HSET', KEYS[1], 'ballot', whole(store.ballot))
    if insync_is_fit(set, RUN, store.led) then
        redis.call('HSET', KEYS[1], 'led', string.match(RUN, '%S+$') .. ' ' .. store.insync)
    end
end

-- A store that was made anew in an empty Redis has no in-sync set any more, and answers wait for nobody: who
-- knows that it had one brings it back.
local function copies_adopted(store)
    local is_news = MY_SET ~= nil and MY_SET.copies ~= '' and not store.copies
    if is_news then
        store.copies, store.insync = MY_SET.copies, insync_begin(whole(store.epoch), RUN, MY_SET.copies)
        store.needed, store.growing, store.changed = '', '', whole(members_changed(store))
        redis.call('HSET', KEYS[1], 'copies', store.copies, 'insync', store.insync, 'needed', '',
            'growing', '', 'changed', store.changed, 'syncs', '')
    end
    return is_news
end

-- A report is a promise.
local function has_promised(store)
    return ROLE ~= 'lease' or not store.ballot or (PROMISED == store.ballot and PROMISED_GATE == store.gate)
end

-- While gated: what this process knows. A report stands for one gating only. Two of one member id, by a copy of a state
-- directory: what the later directory has recorded counts, and each may have seen what the other has not.
local function report(store, stripes, me)
    local fell_back = MY_EPOCH == store.epoch and is_ahead(ARGV[20], stripes.counter)
    if me.rgate == store.gate and me.rincarnation ~= INCARNATION and (me.repoch ~= '0' or MY_EPOCH > 0) then
        local water, version = tonumber(me.rwater), tonumber(me.rroll)
        if water > MY_WATER or (water == MY_WATER and version > MY_VERSION) then
            redis.call('HSET', member_key(ID), 'rdoubt', 'doubt')
            return
        end
        fell_back = true
    end
    redis.call('SADD', MEMBERS, ID)
    redis.call('HSET', member_key(ID), 'role', ROLE, 'rgate', store.gate, 'rincarnation', INCARNATION,
        'repoch', ARGV[6], 'rseqs', ARGV[14], 'rfloor', ARGV[8], 'rpassed', ARGV[15],
        'rdoubt', fell_back and 'doubt' or ARGV[16], 'rlist', ARGV[17], 'rroll', ARGV[9], 'rwater', ARGV[19],
        'who', ARGV[12], 'at', whole(RAW_MS), 'rquiet', ARGV[30] or '',
        'promise', whole(PROMISED), 'set', RECORDED)
end

-- The offset only rises: the store's clock never goes back, and after a jump forward it stays ahead.
local function clock_correct(store)
    local now = RAW_MS + store.clock
    local must = math.max(AT_LEAST, store.time)
    local corrected = now < must - TOLERATED_MS and must - now or 0
    if corrected > 0 then
        store.clock = store.clock + corrected
        redis.call('HSET', KEYS[1], 'clock', whole(store.clock))
        stripes_change(LIFE_CLOCK, whole(store.clock))
    end
    -- A grace must not end because of a jump forward, so what cannot be distinguished from one does not count for it
    -- (gateway/scripts/lib/intent.lua): a script sees no time that a heartbeat has not noted (stripe.lua).
    if now + corrected - store.time > LEAP_MS then
        redis.call('HINCRBY', KEYS[1], 'leaps', whole(now + corrected - store.time))
    end
    store.time = math.max(store.time, now + corrected)
    redis.call('HSET', KEYS[1], 'time', whole(store.time))
    return corrected
end

local function counters_lift(floor)
    for i = 0, STRIPES - 1 do
        if tonumber(redis.call('HGET', stripe_key(i), 'counter')) < floor then
            redis.call('HSET', stripe_key(i), 'counter', whole(floor))
        end
    end
end

-- The member that pawl-lease --init-store has put down for its state directory, when no lease service has
-- ever started: then that directory lists nobody, and the first that comes may take the place.
local function founder(all, ids)
    local found
    for _, id in ipairs(ids) do
        if all[id].role == 'lease' and id ~= ID then
            if found or all[id].state ~= 'out' or all[id].at ~= '0' then
                return nil
            end
            found = id
        end
    end
    return found
end

-- Whether it needs nobody to vouch for it: after --init-store and pawl store recover somebody must be the
-- first.
local function is_first(store, me, same, all, ids)
    local one = ROLE == 'lease' and founder(all, ids)
    if one then
        member_drop(one)
        all[one].state = 'forgotten'
    end
    if one or (ROLE == 'lease' and store.open == '1') then
        redis.call('HSET', KEYS[1], 'open', '0')
        return '1'
    end
    return same and me.first or '0'
end

-- A newcomer to this epoch, or the successor of a process that held the same state directory and so is dead.
-- The roll of its entry is above any that it has recorded in another epoch: it must record one of this.
local function enter(store, me, all, ids)
    -- The memory of what was granted ended with the process before: no number that was reserved may come
    -- again, even if this epoch has fallen back while nobody was there to see it; nor one of an epoch
    -- before, of which the admission has not heard: an operator's --floor may have been too low.
    if ROLE == 'lease' and ((me.at and me.at ~= '0') or (MY_WATER > 0 and MY_WATER < store.epoch)) then
        counters_lift(math.max(store.ceiling, MY_FLOOR))
    end
    local same = me.role == ROLE and tonumber(me.epoch) == store.epoch
    local listed = same and me.state ~= 'pending'
    local state, first = 'in', '0'
    if not listed then
        state, first = 'pending', is_first(store, me, same, all, ids)
    end
    if not me.incarnation then
        redis.call('SADD', MEMBERS, ID)
        ids[#ids + 1] = ID
    end
    redis.call('DEL', member_key(ID))
    all[ID] = { role = ROLE, incarnation = INCARNATION, epoch = whole(store.epoch), state = state,
        beats = '0', first = first, since = whole(members_changed(store, MY_VERSION)) }
    for field, value in pairs(all[ID]) do
        redis.call('HSET', member_key(ID), field, value)
    end
    return all[ID]
end

local function beat(me)
    me.beats, me.floor, me.roll, me.at = whole(tonumber(me.beats) + 1), ARGV[8], ARGV[9], whole(RAW_MS)
    redis.call('HSET', member_key(ID), 'beats', me.beats, 'floor', me.floor, 'roll', me.roll, 'at', me.at,
        'who', ARGV[12], 'about', ARGV[22], 'promise', whole(PROMISED), 'set', RECORDED,
        'address', ARGV[31] or '')
    if NUMBER ~= '' then
        me.sent, me.echo = NUMBER, ARGV[29]
        redis.call('HSET', member_key(ID), 'sent', me.sent, 'echo', me.echo)
    end
end

-- Which heartbeats of whom the store has; not of those that are gone, or a list of many would be too long to echo.
local function beats_sent(all, ids)
    local list = {}
    for _, id in ipairs(ids) do
        list[#list + 1] = all[id].sent and is_fresh(all[id])
            and id .. ' ' .. all[id].incarnation .. ' ' .. all[id].sent or nil
    end
    return table.concat(list, ',')
end

-- The last heartbeat of this process that those have read of, and said so, without whom nobody admits: a majority of
-- the registrars; else any lease service, for an admission needs all.
local function beats_echoed(store, all, ids)
    local last = 0
    for _, id in ipairs(ids) do
        local one = all[id]
        for whose, incarnation, number in string.gmatch(one.echo or '', '([%w_-]+) ([%w_-]+) (%d+)') do
            if one.role == 'lease' and whose == ID and incarnation == INCARNATION then
                one.echoed = number
            end
        end
        last = one.state == 'in' and math.max(last, tonumber(one.echoed or 0)) or last
    end
    if store.majority == '1' then
        return registrars_reached(registrars_of(store.registrars), all, 'echoed') or 0
    end
    return last
end

-- The roll, or the floor, that those have recorded who count: a majority of the registrars, else all live lease
-- services; nil: there are none. also: a registrar on the way in counts for itself, or two would wait for the third.
local function recorded_by_all(store, all, ids, field, also)
    if store.majority == '1' then
        return registrars_reached(registrars_of(store.registrars), all, field, also)
    end
    local lowest
    for _, id in ipairs(ids) do
        if is_live_lease(all[id]) then
            lowest = math.min(lowest or TOKEN_LAST, tonumber(all[id][field]))
        end
    end
    return lowest
end

-- After recover: whether those that do not know of it are too few to admit what was before. Until then nothing
-- is granted, and nobody else joins.
local function before_is_over(store, all)
    local before, ignorant = registrars_of(store.before), 0
    for _, id in ipairs(before.ids) do
        ignorant = ignorant + (all[id] and all[id].state == 'in' and 0 or 1)
    end
    return before.count == 0 or ignorant < before.count, before.is
end

-- A pending member is in when those who count, and there are some, have recorded a list with it. A lease
-- service must also have recorded such a list itself, and a floor that is not below the ceiling.
local function may_enter(store, one, recorded, waits)
    local since = tonumber(one.since)
    local itself = one.role ~= 'lease'
        or (tonumber(one.roll) >= since and tonumber(one.floor) >= store.ceiling)
    return itself and not waits and (one.first == '1' or (recorded and recorded >= since))
end

local function promote(store, all, ids)
    local is_over, knew = before_is_over(store, all)
    for _, id in ipairs(ids) do
        local waits = not is_over and not knew[id] and all[id].first ~= '1'
        if all[id].state == 'pending'
            and may_enter(store, all[id], recorded_by_all(store, all, ids, 'roll', id), waits) then
            all[id].state = 'in'
            redis.call('HSET', member_key(id), 'state', 'in')
        end
    end
end

-- The first lease services that are in become the registrars, as many as there are to be. When a majority of
-- all of them has a floor that covers what may be granted, from then on it is the majority that counts.
local function registrars_fill(store, all, ids)
    local registrars = registrars_of(store.registrars)
    if registrars.count == 0 or store.majority == '1' then
        return
    end
    for _, id in ipairs(ids) do
        if all[id].role == 'lease' and all[id].state == 'in' and not registrars.is[id]
            and #registrars.ids < registrars.count then
            registrars.ids[#registrars.ids + 1] = id
            store.registrars = store.registrars .. ' ' .. id
            redis.call('HSET', KEYS[1], 'registrars', store.registrars)
        end
    end
    local covered = registrars_reached(registrars, all, 'floor')
    if #registrars.ids == registrars.count and covered and covered >= store.ceiling
        and before_is_over(store, all) then
        store.majority = '1'
        redis.call('HSET', KEYS[1], 'majority', '1')
        members_changed(store)
    end
end

-- The ceiling is the floor that those have recorded who count. It never falls within an epoch.
local function ceiling_raise(store, stripes, all, ids)
    local counts = store.majority == '1' or before_is_over(store, all)
    local lowest = counts and recorded_by_all(store, all, ids, 'floor')
    -- Also where somebody has written another one into a stripe.
    if (lowest and lowest > store.ceiling) or stripes.ceilings_differ then
        lowest = math.max(lowest or 0, store.ceiling)
        store.ceiling = lowest
        redis.call('HSET', KEYS[1], 'ceiling', whole(lowest))
        stripes_change(LIFE_CEILING, whole(lowest))
    end
end

-- Half a block is always left when the next one is asked for.
local function goal(store, stripes)
    if stripes.top + math.ceil(BLOCK / 2) <= store.ceiling then
        return store.ceiling
    end
    return math.max(store.ceiling, math.min(stripes.top + BLOCK, TOKEN_LAST))
end

-- How much memory is in use, as Redis counts it when it refuses to take more (getMaxmemoryState(), evict.c),
-- and how much may be; 0: no bound.
local function memory()
    local text = redis.call('INFO', 'memory')
    local function field(name)
        return tonumber(string.match(text, '\n' .. name .. ':(%d+)')) or 0
    end
    return whole(field('used_memory') - field('mem_not_counted_for_evict')), whole(field('maxmemory'))
end

-- Nothing speaks against this process: its heartbeat in the epoch that is.
local function heartbeat(store, stripes, me, all, ids)
    if me.incarnation ~= INCARNATION or tonumber(me.epoch) ~= store.epoch or me.state == 'out' then
        -- What is still being written may be the list of another epoch, whose roll says nothing in this one.
        if ARGV[18] ~= 'settled' then
            return { 'unsettled' }
        end
        me = enter(store, me, all, ids)
    end
    beat(me)
    if ROLE == 'lease' and me.state == 'in' then
        insync_change(store, all, ids, ARGV[27], recorded_by_all(store, all, ids, 'roll'))
    end
    local corrected = clock_correct(store)
    promote(store, all, ids)
    registrars_fill(store, all, ids)
    ceiling_raise(store, stripes, all, ids)
    if ROLE == 'lease' and me.state == 'in' then
        insync_goes_on(store, RUN, ARGV[26], recorded_by_all(store, all, ids, 'roll'))
    end
    local reply = { me.state, store.epoch, store.id, store.roll, goal(store, stripes), whole(store.time),
        members_list(store, all, ids) }
    if me.state == 'in' and ARGV[21] == 'judges' and not store.access then
        redis.call('HSET', KEYS[1], 'access', '1')
    end
    if me.state == 'in' then
        bars_add(store.time)
        local seqs = {}
        for i = 0, STRIPES - 1 do
            seqs[i + 1] = stripes.seq[i]
        end
        reply[8], reply[9] = tonumber(me.beats), whole(store.ceiling)
        reply[10], reply[11] = whole(corrected), seqs
        reply[12], reply[13] = memory()
        reply[14] = string.match(RUN, ' (.*)')
        local registrars, missing = registrars_of(store.majority == '1' and store.registrars or ''), {}
        for _, id in ipairs(registrars.ids) do
            missing[#missing + 1] = not (all[id] and is_live_lease(all[id])) and id or nil
        end
        reply[15], reply[16], reply[17] = #registrars.ids, table.concat(missing, ' '), insync_told(store, RUN)
        if NUMBER ~= '' then
            reply[18], reply[19] = beats_sent(all, ids), beats_echoed(store, all, ids)
        end
    end
    return reply
end

local store, stripes, unknown = store_known(ARGV[1] ~= '' and ARGV[1] or nil)
if unknown then
    return unknown
end
local all, ids = members_read()
local me = all[ID] or {}
local why = gate_reason(store, stripes, me, members_are_whole(all, ids))
if why then
    gate_shut(store, why, ARGV[13], RUN)
end
if store.gate then
    if copies_adopted(store) then
        gate_shut(store, store.why, ARGV[13], RUN) -- who has reported has promised nothing
    end
    ballot_chosen(store)
    if ARGV[18] == 'settled' and has_promised(store) then
        report(store, stripes, me)
    end
    return { 'gated', store.epoch, store.gate, store.why or '', store.ballot or '', store.behind or '' }
end
-- What it knows is reported all the same while the gate is shut: the others wait for that.
if store.access and ARGV[21] == '' then
    return { 'open' }
end
if me.state == 'forgotten' then
    return { 'forgotten' }
end
if MY_EPOCH == store.epoch and me.incarnation ~= INCARNATION then
    return { 'superseded' }
end
if copies_adopted(store) then
    epoch_raise(store, all, ids)
end
local copies, must = string.match(ARGV[25], '^(%d*)(s?)$')
if (copies ~= '' and copies ~= (store.copies or '1')) or (must == 's' and not store.copies) then
    return { 'copies', store.copies or '' }
end
return heartbeat(store, stripes, me, all, ids)
