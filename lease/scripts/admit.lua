-- admit.lua - begin a new epoch of a gated store, if the floors of all lease services are known, or of a
-- majority of the registrars: the epoch rises, every counter goes above all floors, and holds survive only if the store proves that it has lost
-- nothing.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}
--   ARGV[1]  "SCHEMA:ID"   ARGV[2]  run_id of the Redis on this link   ARGV[3]  name of the gating
--   ARGV[4]  member id of the lease service that asks; it has reported
--   ARGV[5]  "wait" while the members have time to report, then "now"   ARGV[6]  "host:port" of this Redis
--   ARGV[7]  "lease" with the lease on the epoch (docs/decisions/0050), else ""
--   ARGV[8]  what other nodes of the in-sync set have, "HOST:PORT SCHEMA:ID SEQ...", comma between; or ""
--   returns {"admitted", epoch, "complete" | "incomplete" | "accepted" (by an operator's order), counter, members that were not asked, comma
--             between}
--           {"floors-missing", ids of lease services, comma between; "unknown" if none is known}: nobody may
--             admit without their floors, or this one does not know enough to admit at all
--           {"registrars-missing", how many were heard, how many are needed, ids of the others, comma between}
--           {"members-missing", ids, comma between}: given more time, the store may prove to be complete
--           {"echoes-young"}: who was not asked may still answer what it reads at a former primary
--           {"record", {the list}}: the state directory of the one that asks must have this list, which names
--             all that are in doubt, before the gate opens; then it reports once more, and asks again
--           {"unrecorded", ids, comma between}: those of these lease services must, too; of registrars a
--             majority
--           {"behind", this Redis and the nodes of the in-sync set, blank between}: it is none of them, or not of their stream
--           {"failover"}: an operator is making another node the primary, and this one is not admitted yet
--           {"moved"}: this gating is over, or this Redis another one; nothing was changed
local ASKER, RUN, QUIET_MS = ARGV[4], redis_run(ARGV[2]), 3300
local stripes = stripes_read()
local store = store_read(stripes)
local all, ids = members_read()
if store.id ~= ARGV[1] or store.gate ~= ARGV[3] or store.gaterun ~= RUN then
    return { 'moved' }
end
if insync_yields(store) then
    return { 'failover' }
end

-- Who was in doubt: all that the store knows of, and all that any state directory does. The store may have
-- lost them, and a directory have missed them.
local function doubts_known()
    local lives = doubts_read()
    for _, id in ipairs(ids) do
        local list = has_reported(store, all, id) and all[id].rlist or ''
        for name, life in string.gmatch(list, 'doubt (%S+ %S+) (%d+)') do
            lives[name] = math.max(lives[name] or 0, tonumber(life))
        end
    end
    return lives
end

-- The list that the state directory of a lease service must have, or nil: it has all these doubts, and all
-- registrars that were heard: they are in at once, and must be asked the next time; and the in-sync set.
local function list_to_record(id, lives, heard, insync)
    local listed, list, named = {}, {}, {}
    for line in string.gmatch(all[id].rlist, '[^,]+') do
        listed[line] = true
        named[string.match(line, '^lease (%S+)') or ''] = true
        local is_made_anew = string.sub(line, 1, 6) == 'doubt '
            or (insync and string.sub(line, 1, 7) == 'insync ')
        list[#list + 1] = not is_made_anew and line or nil
    end
    local lacks = insync ~= nil and not listed['insync ' .. insync]
    list[#list + 1] = insync and 'insync ' .. insync
    for _, other in ipairs(sorted(heard or {})) do
        if not named[other] then
            list[#list + 1], lacks = 'lease ' .. other .. ' ' .. all[other].rincarnation, true
        end
    end
    for _, line in ipairs(doubts_list(lives)) do
        list[#list + 1], lacks = line, lacks or not listed[line]
    end
    return lacks and list or nil
end

-- The most that is known: {epoch, roll, top, seqs}; whether nobody has seen more than this store has; and whether somebody
-- was answered what it lacks.
local function reports_weigh(lives)
    local top = math.max(stripes.top, store.ceiling)
    local most = { epoch = store.epoch, roll = store.roll, top = top, seqs = {} }
    local nothing_lost, lacks = store.sound and store.why ~= 'empty' and store.why ~= 'damaged', false
    for i = 0, STRIPES - 1 do
        most.seqs[i] = stripes.seq[i]
    end
    for _, id in ipairs(ids) do
        local one = has_reported(store, all, id) and all[id] or nil
        local epoch, i = one and tonumber(one.repoch) or 0, 0
        if one then
            most.epoch = math.max(most.epoch, epoch, tonumber(one.rwater))
            most.roll = math.max(most.roll, tonumber(one.rroll))
            most.top = math.max(most.top, tonumber(one.rfloor), tonumber(one.rpassed))
            nothing_lost = nothing_lost and epoch <= store.epoch and one.rdoubt == ''
        end
        for number in string.gmatch(one and epoch >= store.epoch and one.rseqs or '', '%d+') do
            nothing_lost = nothing_lost and tonumber(number) <= stripes.seq[i]
            lacks = lacks or tonumber(number) > stripes.seq[i]
            most.seqs[i] = math.max(most.seqs[i], tonumber(number))
            i = i + 1
        end
    end
    -- A doubt may be of an epoch that was about to begin.
    for _, life in pairs(lives) do
        most.epoch = math.max(most.epoch, life - 1)
    end
    return most, nothing_lost, lacks
end

-- Was everybody asked who may have seen something: all that are listed, in the store or in a state directory,
-- with the memory that they had? The ids of those who were not.
local function unasked(needed)
    local absent = {}
    local function must_be_asked(_, id, incarnation)
        if not (has_reported(store, all, id) and all[id].rincarnation == incarnation) then
            absent[id] = true
        end
    end
    for _, id in ipairs(ids) do
        local one = all[id]
        if (one.state == 'in' or one.state == 'pending') and tonumber(one.epoch) == store.epoch then
            must_be_asked(one.role, id, one.incarnation)
        end
        if needed[id] then
            each_listed(all, id, must_be_asked)
        end
    end
    return sorted(absent)
end

-- Who was not asked answers until 3 s after it has sent the last heartbeat of which enough of these have said
-- that they have read of it: of each majority of the registrars one is in any other one.
local function are_quiet(needed, registrars)
    local quiet, count = 0, 0
    for id in pairs(needed) do
        count = count + 1
        local quiet_ms = has_reported(store, all, id) and tonumber(all[id].rquiet) or 0
        quiet = quiet + (quiet_ms >= QUIET_MS and 1 or 0)
    end
    return quiet >= (registrars and registrars.most or count)
end

-- Of a store that was made anew in an empty Redis only the lists of those who report know how many there are to be.
local function registrars_listed()
    local most = 0
    for id, one in pairs(all) do
        local _, count = string.gsub(has_reported(store, all, id) and one.rlist or '', 'registrar ', '')
        most = math.max(most, count)
    end
    return most
end

-- The epoch is at least the Unix time, as that of a new store is: what all forgot shall not come again.
local function life_begin(most, how, registrars, set)
    local complete = how == 'complete'
    local epoch = set and set.epoch or math.max(most.epoch + 1, math.floor(RAW_MS / 1000))
    local alive = complete and store.alive or epoch
    most.epoch, most.roll, most.top = epoch, most.roll + 1, math.min(most.top, TOKEN_LAST)
    local life = life_text(store.id, whole(epoch), whole(alive), whole(store.clock), whole(most.top))
    for i = 0, STRIPES - 1 do
        redis.call('HSET', stripe_key(i), 'life', life, 'seq', whole(most.seqs[i] + 1),
            'counter', whole(most.top))
        redis.call('PERSIST', stripe_key(i))
    end
    redis.call('HSET', KEYS[1], 'id', store.id, 'epoch', whole(epoch), 'alive', whole(alive), 'run', RUN,
        'roll', whole(most.roll), 'time', whole(store.time), 'clock', whole(store.clock),
        'ceiling', whole(most.top), 'gate', '', 'gaterun', '', 'why', '', 'behind', '', 'open', '0',
        'how', how,
        'lost', complete and (store.lost or '') or whole(epoch))
    if set then
        redis.call('HSET', KEYS[1], 'insync', insync_text(set), 'needed', table.concat(set.nodes, ' '),
            'growing', '', 'added', '', 'changed', whole(most.roll), 'syncs', '', 'ballot', '', 'proven', '',
            'order', '', 'accepted', '')
    end
    if registrars then
        redis.call('HSET', KEYS[1], 'majority', '1',
            'registrars', registrars.count .. ' ' .. table.concat(registrars.ids, ' '))
    elseif not store.registrars then
        redis.call('HSET', KEYS[1], 'registrars', registrars_listed())
    end
end

-- Who may have sent to an upstream what the store has lost, and has to record it again before anything is
-- sent that must come after it (gateway/scripts/lib/intent.lua): every gateway that is a member, or stands in
-- a list, or had been admitted, and who was in doubt before: what these have recorded again is lost, too. It
-- is the epoch above all known ones that begins it, though its epoch may be higher: what ended a doubt of
-- before does not end this one.
local function doubts_begin(lives, life)
    for name in pairs(lives) do
        lives[name] = life
    end
    local function enters(role, id, incarnation)
        if role == 'gateway' then
            lives[id .. ' ' .. incarnation] = life
        end
    end
    for _, id in ipairs(ids) do
        local one = all[id]
        if one.incarnation and one.state ~= 'forgotten' then
            enters(one.role, id, one.incarnation)
        end
        if has_reported(store, all, id) then
            enters(one.repoch ~= '0' and one.role, id, one.rincarnation)
            each_listed(all, id, enters)
        end
    end
end

-- Which lease services have yet to record these doubts. One that is silent and needed by nobody has no part
-- in this epoch before it has recorded its list. Of registrars a majority is enough: none of them is heard
-- without one of these.
local function unrecorded(needed, lives, registrars, insync)
    local behind, recorded = {}, 0
    for _, id in ipairs(ids) do
        if all[id].role == 'lease' and has_reported(store, all, id)
            and (needed[id] or (is_fresh(all[id]) and not registrars)) then
            behind[id] = list_to_record(id, lives, registrars and needed, insync) and true
            recorded = recorded + (behind[id] and 0 or 1)
        end
    end
    return registrars and recorded >= registrars.most and {} or sorted(behind)
end

-- That somebody is known to be dead stays known; but everybody may be others in another epoch.
local function doubts_write(lives)
    local states = hash_read(DOUBT)
    for name, life in pairs(lives) do
        local dead, begun = string.match(states[name] or '', '^(dead %d+ %d+) (%d+)$')
        local stays = dead and (name ~= EVERYBODY or tonumber(begun) == life)
        redis.call('HSET', DOUBT, name, (stays and dead or 'open') .. ' ' .. whole(life))
    end
end

-- A gateway is in when the list of a firm one names it, as it is now, or those of a majority of the registrars
-- do; else it joins as newcomers do.
local function members_begin(most, firm, enough)
    local named = {}
    for id in pairs(firm) do
        each_listed(all, id, function(_, other, incarnation)
            local name = other .. ' ' .. incarnation
            named[name] = (named[name] or 0) + 1
        end)
    end
    for _, id in ipairs(ids) do
        local one = all[id]
        member_drop(id)
        if has_reported(store, all, id) and (firm[id] or one.role == 'gateway') then
            local state = (firm[id] or (named[id .. ' ' .. one.rincarnation] or 0) >= enough) and 'in'
                or 'pending'
            redis.call('SADD', MEMBERS, id)
            redis.call('HSET', member_key(id), 'role', one.role, 'incarnation', one.rincarnation,
                'epoch', whole(most.epoch), 'state', state, 'beats', '0', 'floor', one.rfloor,
                'roll', one.rroll, 'since', whole(most.roll), 'at', one.at, 'who', one.who)
        end
    end
end

local lives = doubts_known()
local list = has_reported(store, all, ASKER) and list_to_record(ASKER, lives)
if list then
    return { 'record', list }
end
local order, needed, missing, heard
local registrars = registrars_newest(store, all)
if registrars then
    needed, heard, missing = registrars_heard(store, all, registrars)
    if heard < registrars.most then
        return { 'registrars-missing', heard, registrars.most, table.concat(sorted(missing), ',') }
    end
    order = sorted(needed)
else
    order, needed, missing = floors_needed(store, all, ASKER)
    if next(missing) then
        return { 'floors-missing', table.concat(sorted(missing), ',') }
    end
end
local firm = firm_ones(all, order, registrars)
if not next(firm) then
    local known = floors_known(all, ASKER)
    return { 'floors-missing', next(known) and table.concat(sorted(known), ',') or 'unknown' }
end
local most, nothing_lost, lacks = reports_weigh(lives)
local absent = unasked(needed)
if #absent > 0 and nothing_lost and ARGV[5] == 'wait' then
    return { 'members-missing', table.concat(absent, ',') }
end
-- A node of the in-sync set has all that was answered, also when others are silent; else only memory proves that. One that
-- was promoted and lacks something has copied a replica that lagged behind.
local newest, known = insync_newest(store, all), insync_read(store.insync)
local is_of_this = newest and newest.stream == string.match(RUN, '%S+$')
local fit = is_of_this and newest.epoch == tonumber(store.ballot)
    or newest and (is_of_this or not lacks) and insync_is_fit(newest, RUN, store.led)
-- That they have recorded the set of the new epoch says nothing, nor if it was to begin at an earlier gate of this Redis:
-- what was found before does.
local since = tonumber(store.proven)
local proven = fit and known
    and (is_of_this and since and newest.epoch >= since or known.epoch == newest.epoch)
local complete = nothing_lost and (#absent == 0 or proven) and true or false
-- A disk that was set back to before the record is not what the others have copied it for.
local agreed = newest and nothing_lost and not insync_is_newer(newest, known)
    and insync_all_agree(newest, ARGV[6], ARGV[8], store.id, stripes.seq)
local stands = not newest or fit or insync_is_in_place(newest, RUN, ARGV[6], complete or agreed,
    store.accepted ~= '1' and known)
if not stands and known and store.ballot and store.order == loss_of(store, newest) then
    stands, store.accepted = true, '1'
    redis.call('HSET', KEYS[1], 'accepted', '1')
end
-- What was begun by the order is gone on with, also at another gate of this Redis: who has recorded that does not know.
complete = complete and store.accepted ~= '1'
if not stands then
    local text = ARGV[6] .. '/' .. string.match(RUN, '^%S+') .. ' ' .. table.concat(newest.nodes, ' ')
    redis.call('HSET', KEYS[1], 'behind', text)
    return { 'behind', text }
end
if #absent > 0 and ARGV[7] == 'lease' and not are_quiet(needed, registrars) then
    return { 'echoes-young' }
end
local set, insync
if known then
    local ballot = tonumber(store.ballot) or 0
    if ballot <= most.epoch then
        return { 'moved' }
    end
    local nodes = fit and newest.nodes or { ARGV[6] .. '/' .. string.match(RUN, '^%S+') }
    set = { epoch = ballot, generation = 0, stream = string.match(RUN, '%S+$'),
        copies = store.copies, nodes = nodes }
    insync = insync_text(set)
    redis.call('HSET', KEYS[1], 'proven', proven and whole(since or ballot) or '')
end
if not complete then
    doubts_begin(lives, most.epoch + 1)
end
list = has_reported(store, all, ASKER) and list_to_record(ASKER, lives, registrars and needed, insync)
local behind = unrecorded(needed, lives, registrars, insync)
if #behind > 0 then
    return list and { 'record', list } or { 'unrecorded', table.concat(behind, ',') }
end
doubts_write(lives)
local how = complete and 'complete' or store.accepted == '1' and 'accepted' or 'incomplete'
life_begin(most, how, registrars, set)
members_begin(most, firm, registrars and registrars.most or 1)
return { 'admitted', whole(most.epoch), how, whole(most.top),
    table.concat(absent, ',') }
