-- status.lua - everything that pawl store tells of the store. Changes nothing.
-- on: store
--   KEYS[1]  pawl:{store}   ARGV[1]  "host:port" of this Redis
--   returns  {"status", facts, members, asked, waiting, doubts, nodes, registrars}
--     facts    {name, value, ...}: see below; "kind" is "empty", "another" (no store that this release
--              knows), or "store"
--     members  {{name, value, ...}, ...}, in the order of their ids
--     asked    while gated: 0 no living lease service has reported, 1 none of them may admit the store,
--              2 one of them may, 3 none will: this Redis is not in the in-sync set
--     waiting  {ids of lease services}, whose floors the nearest one still needs
--     doubts   {{name, value, ...}, ...}: gateways that may have sent what the store has lost, and have not
--              said yet that all is recorded again (gateway/scripts/lib/intent.lua), in the order of ids
--     nodes    {{name, value, ...}, ...}: of a store with an in-sync set, this Redis first
--     registrars  {{name, value, ...}, ...}
local stripes = stripes_read()
local store = store_read(stripes)
local all, ids = members_read()

-- What this Redis says of itself; "" when the user may not ask.
local function info(section, name)
    local text = redis.pcall('INFO', section)
    return type(text) == 'string' and string.match(text, '\n' .. name .. ':([^\r\n]*)') or ''
end

-- Whom this lease service must wait for, and whether it may admit: as lease/scripts/admit.lua decides.
local registrars = registrars_newest(store, all)
local function waits_for(asker)
    if registrars then
        local _, heard, missing = registrars_heard(store, all, registrars)
        return sorted(missing), heard >= registrars.most
    end
    local order, _, missing = floors_needed(store, all, asker)
    if next(missing) or next(firm_ones(all, order)) then
        return sorted(missing), not next(missing)
    end
    return sorted(floors_known(all, asker)), false
end

local asked, waiting = 0, {}
for _, id in ipairs(ids) do
    if has_reported(store, all, id) and all[id].role == 'lease' and is_fresh(all[id]) then
        local missing, may = waits_for(id)
        if asked < 2 and (may or #waiting == 0 or (#missing > 0 and #missing < #waiting)) then
            waiting = missing
        end
        asked = math.max(asked, may and 2 or 1)
    end
end

local facts = {}
local function fact(name, value)
    facts[#facts + 1] = name
    facts[#facts + 1] = value
end

local top_stripe, absent, first_absent = '', 0, ''
for i = 0, STRIPES - 1 do
    local key = stripe_key(i)
    if stripes.top > 0 and top_stripe == '' and stripes.counter[i] == stripes.top then
        top_stripe = key
    end
    if redis.call('EXISTS', key) == 0 then
        absent = absent + 1
        first_absent = first_absent == '' and key or first_absent
    end
end

fact('kind', not store.id and stripes.there == 0 and 'empty'
    or (store.id and string.sub(store.id, 1, #SCHEMA) == SCHEMA) and 'store' or 'another')
fact('identity', store.id or '')
fact('sound', store.sound and 1 or 0)
fact('record', redis.call('EXISTS', KEYS[1])) -- is there at all
fact('absent', absent) -- stripes that are not there
fact('first_absent', first_absent)
fact('shut', stripes.shut) -- stripes whose epoch is negative
fact('epoch', store.epoch)
fact('run', store.run or '')
fact('roll', store.roll)
fact('time', store.time)
fact('clock', store.clock)
fact('ceiling', math.max(stripes.ceiling, store.ceiling))
fact('top', stripes.top) -- highest counter, and the stripe that has it
fact('top_stripe', top_stripe)
fact('gate', store.gate or '')
fact('why', store.why or '')
fact('how', store.how or '')
local before, unaware = registrars_of(store.before), {}
for _, id in ipairs(before.ids) do
    unaware[#unaware + 1] = not (all[id] and all[id].state == 'in') and id or nil
end
fact('unaware', before.count > 0 and #unaware >= before.count and table.concat(unaware, ', ') or '')
local wanted = registrars_of(store.registrars)
fact('registrars', wanted.count) -- how many there are to be; 0: all lease services count
fact('majority', store.majority == '1' and wanted.most or 0) -- how many must be heard; 0: all of them
local set = insync_read(store.insync)
local newest = set and insync_newest(store, all) -- this Redis may be behind it
set = insync_is_newer(newest, set) and newest or set
-- Promoted, and no node of the set, or of another stream: it may lack what was answered, no matter who admits it.
local this = info('server', 'run_id') .. ' ' .. info('replication', 'master_replid')
fact('outside', store.gate and set and #set.nodes > 0 and not insync_is_fit(set, this, store.led)
    and string.find(info('replication', 'master_replid2'), '[^0]') and 1 or 0)
fact('copies', set and tonumber(store.copies) or 0) -- 0: there is no in-sync set
-- A replica has connected since those that are needed were last asked what is on their disks (lib/insync.lua).
local syncs = (tonumber(info('stats', 'sync_full')) or 0) + (tonumber(info('stats', 'sync_partial_ok')) or 0)
fact('unasked', set and store.syncs ~= whole(syncs) and 1 or 0)
fact('generation', set and set.generation or 0)
fact('set_stream', set and set.stream or '')
fact('growing', string.match(store.growing or '', '^(.*)/') or '')
fact('open', store.open == '1' and 1 or 0)
fact('redis_run', this)
fact('redis_version', info('server', 'redis_version'))
fact('redis_aof', info('persistence', 'aof_enabled'))
fact('redis_policy', info('memory', 'maxmemory_policy'))
fact('redis_role', info('replication', 'role'))
fact('now', RAW_MS) -- by Redis' own clock
fact('memory', (tonumber(info('memory', 'used_memory')) or 0)
    - (tonumber(info('memory', 'mem_not_counted_for_evict')) or 0))
fact('maxmemory', tonumber(info('memory', 'maxmemory')) or 0)
fact('routes', store.routes or '') -- hash of the table that is served
local marks, lost = hash_read(KEYS[1] .. ':marks'), {}
for of, word in pairs((store.lost or '') ~= '' and marks or {}) do
    lost[#lost + 1] = string.match(word, '^%d+') ~= store.lost and of or nil
end
table.sort(lost)
fact('marks_lost', lost[1] or '') -- first of the stores whose marks are lost

local members = {}
for n, id in ipairs(ids) do
    local one, at = all[id], tonumber(all[id].at)
    local reported = has_reported(store, all, id)
    members[n] = {
        'id', id, 'role', one.role or '', 'state', one.state or '', 'incarnation', one.incarnation or '',
        'epoch', tonumber(one.epoch) or 0,
        'floor', math.max(tonumber(one.floor) or 0, tonumber(one.rfloor) or 0),
        'passed', tonumber(one.rpassed) or 0, -- highest token that a gateway let through, as it reported
        'roll', tonumber(reported and one.rroll or one.roll) or 0, 'since', tonumber(one.since) or 0,
        'age', at and at > 0 and RAW_MS - at or -1, -- ms since its last heartbeat; -1: not known
        'routes', one.routes or '', -- hash of a gateway's table
        'registrar', wanted.is[id] and 1 or 0,
        'live', is_fresh(one) and 1 or 0, 'reported', reported and 1 or 0, 'who', one.who or '',
    }
end

local doubt, doubts, who = hash_read(KEYS[1] .. ':doubt'), {}, {}
for entry in pairs(doubt) do
    who[#who + 1] = entry
end
table.sort(who)
for n, entry in ipairs(who) do
    local gateway, incarnation = string.match(entry, '^(%S+) (%S+)$')
    local dead = string.match(doubt[entry], '^dead (%d+)')
    doubts[n] = {
        'gateway', gateway or entry, 'incarnation', incarnation or '', 'state', dead and 'dead' or 'open',
        'age', dead and math.max(0, RAW_MS + store.clock - tonumber(dead)) or -1, -- ms it is known to be dead
    }
end
if asked == 2 and (store.behind or '') ~= '' then
    asked = 3
end

-- Those of the set, those that were, and those that copy this one.
local nodes, known = {}, {}
local function node(name)
    if not known[name] then
        known[name] = { run = '', kept = 0, online = 0, offset = -1, lag = -1, gone = -1, node = name }
        nodes[#nodes + 1] = known[name]
    end
    return known[name]
end
if set then
    local needed = table.concat(set.nodes, ' ')
    node(string.match(' ' .. needed, ' (%S+)/' .. info('server', 'run_id')) or ARGV[1] or '').offset =
        tonumber(info('replication', 'master_repl_offset')) or -1
    for name, run in string.gmatch(needed, '(%S+)/([^/%s]+)') do
        node(name).run, node(name).kept = run, 1
    end
    for name, at in string.gmatch(store.gone or '', '(%S+)/%S+ (%d+)') do
        node(name).gone = math.max(0, RAW_MS + store.clock - at)
    end
    local i, line = 0, info('replication', 'slave0')
    while line ~= '' do
        local ip, port, state, offset, lag = string.match(line,
            '^ip=(.*),port=(%d+),state=(.*),offset=(%d+),lag=(%d+)')
        local one = node((ip or '') .. ':' .. (port or ''))
        one.online, one.offset = state == 'online' and 1 or 0, tonumber(offset) or -1
        one.lag, i = (tonumber(lag) or 0) * 1000, i + 1
        line = info('replication', 'slave' .. i)
    end
end

local function listed(one)
    local list = {}
    for name, value in pairs(one) do
        list[#list + 1], list[#list + 2] = name, value
    end
    return list
end
for n, one in ipairs(nodes) do
    nodes[n] = listed(one)
end
local named = {}
for n, id in ipairs(wanted.ids) do
    local one = all[id] or {}
    local epoch, generation = string.match(one.set or '', '^(%d+) (%d+)$')
    named[n] = listed({ id = id, promise = tonumber(one.promise) or 0,
        address = one.address or '',
        live = all[id] and is_fresh(one) and 1 or 0,
        epoch = tonumber(epoch) or 0, generation = tonumber(generation) or 0 })
end
return { 'status', facts, members, asked, waiting, doubts, nodes, named }
