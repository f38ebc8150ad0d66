-- insync.lua - the in-sync set: the nodes of Redis that may take over (docs/decisions/0047). Whatever is answered is on
-- the disks of all that are needed. Of a store without a set none of this is in the record:
--   copies   with fewer nodes nothing is answered
--   insync   "EPOCH GENERATION STREAM/COPIES NODE...", as state directories have it: the epoch of the admission, how often
--            the set was changed in it, the replid of that Redis, and copies; NODE: "host:port/RUN_ID"
--   needed   "NODE...": those that are waited for: also one that is being added, or whose going is not recorded yet
--   growing  the one that is being added, or ""   changed  the roll of the lists that have insync
--   added    the one that was, until that is recorded: it may not take over yet, so it is no copy of --copies
--   syncs    how often replicas had connected to this Redis when those of them that are needed were last asked what is
--            on their disks; "": not yet; "-": it is not there
--   gone     "NODE MS ...": the last that were taken out, and when by the store's clock
--   ballot   while gated: the epoch that would begin   proven  the first that state directories were to record since
--            this Redis was found to be fit by a set of before
--   forgotten  "host:port": the node that an operator has forgotten last; it is not named as away any more
--   failover "GATE MS": by an operator's wish nobody admits at this gate until then, by the clock of this Redis
--   led      "STREAM INSYNC": a node of this very set was promoted, and has begun this stream with all that was answered.
--            Whoever has copied that, and is promoted before there was an admission, goes on with the set, too
--   order    a loss_of() that an operator accepts   accepted  "1": an admission has begun to act by it, on this Redis
local NODES_MAX, FAILOVER_MS = 5, 10000

local function insync_read(text)
    local epoch, generation, stream, copies, rest =
        string.match(text or '', '^(%d+) (%d+) ([^ /]+)/?(%d*)(.*)$')
    if not epoch then
        return nil
    end
    local set = { epoch = tonumber(epoch), generation = tonumber(generation), stream = stream,
        copies = copies, nodes = {}, runs = {} }
    for node in string.gmatch(rest, '%S+') do
        set.nodes[#set.nodes + 1] = node
        set.runs[string.match(node, '[^/]*$')] = true
    end
    return set
end

local function insync_text(set)
    local text = whole(set.epoch) .. ' ' .. whole(set.generation) .. ' ' .. set.stream .. '/' .. set.copies
    return #set.nodes > 0 and text .. ' ' .. table.concat(set.nodes, ' ') or text
end

-- That of a state directory's list.
local function insync_listed(list)
    return insync_read(string.match(',' .. list, ',insync ([^,]+)'))
end

-- A set begins without a node (insync_begin()); its first nodes say nothing of those that have been in it since.
local function insync_is_newer(one, other)
    return one and (not other or one.epoch > other.epoch or (one.epoch == other.epoch
        and (one.generation > other.generation or #one.nodes > 0 and #other.nodes == 0)))
end

-- The newest of all that is reported: a service that knows of a later set has acted by it.
local function insync_newest(store, all)
    local newest
    for id, one in pairs(all) do
        local set = has_reported(store, all, id) and insync_listed(one.rlist)
        newest = insync_is_newer(set, newest) and set or newest
    end
    return newest
end

-- Whether this Redis, "RUN_ID REPLID", is a node of the set and goes on with its stream, or with one that was led on
-- from it. The name alone does not tell: it may have copied a node outside of it since.
local function insync_is_fit(set, run, led)
    local run_id, stream = string.match(run, '^(%S+) (%S+)$')
    local before = string.match(redis.call('INFO', 'replication'), '\nmaster_replid2:(%x+)')
    local led_to, led_from = string.match(led or '', '^(%S+) (.*)$')
    local further = led_from == insync_text(set) and led_to or set.stream
    return set.runs[run_id] and (stream == set.stream or before == set.stream or stream == further
        or before == further) or false
end

-- Whether all other nodes of the set have said what they have, "NAME ID SEQ...,NAME ID SEQ...", and none has more. This
-- Redis has the name of a node of the set: that of its run_id has ended with the process of before.
local function insync_all_agree(set, name, said, id, seqs)
    local has, is_named = {}, false
    for other, text in string.gmatch(said, '([^, ]+) ([^,]+)') do
        has[other] = text
    end
    for _, node in ipairs(set.nodes) do
        local other = string.match(node, '^(.*)/')
        local its_id, rest = string.match(has[other] or '', '^(%S+) (.*)$')
        local i, has_more = 0, false
        for number in string.gmatch(rest or '', '%d+') do
            has_more = has_more or i >= STRIPES or tonumber(number) > seqs[i]
            i = i + 1
        end
        is_named = is_named or other == name
        if other ~= name and (its_id ~= id or has_more or i < STRIPES) then
            return false
        end
    end
    return is_named
end

-- Whether it is a primary that was started again, or has begun a stream without having copied anybody: no replica that
-- was promoted. Then memory proves what it has (complete), or all nodes of the set do, or it is the only one of its set. By
-- its address, to which several may be led: so not one that knows of others (known), and not of this set.
local function insync_is_in_place(set, run, name, complete, known)
    local only = set.nodes[1] or ''
    local before = string.match(redis.call('INFO', 'replication'), '\nmaster_replid2:(%x+)')
    if #set.nodes == 0 or string.find(before, '[^0]') then
        return #set.nodes == 0
    end
    local is_another = known and #known.nodes > 1 and insync_is_newer(set, known)
    return complete or (#set.nodes == 1 and (set.runs[string.match(run, '^%S+')]
        or string.sub(only, 1, #name + 1) == name .. '/' and not is_another))
end

local function insync_write(store, set, needed, growing)
    store.insync, store.needed, store.growing = insync_text(set), needed, growing
    store.changed = whole(members_changed(store))
    redis.call('HSET', KEYS[1], 'insync', store.insync, 'needed', needed, 'growing', growing,
        'changed', store.changed)
end

-- Whether the gate was shut for another node to be made the primary, and that may yet be. A clock that was set says no.
local function insync_yields(store)
    local gate, till = string.match(store.failover or '', '^(%S+) (%d+)$')
    local left = gate == store.gate and tonumber(till) - RAW_MS or 0
    return left > 0 and left <= FAILOVER_MS
end

-- What an operator accepts by naming it: at this gate, for the epoch that would begin there, that this Redis may lack
-- what the nodes of this very record have. Another gate, another epoch, a later record is another loss.
local function loss_of(store, newest)
    return store.gate .. ' ' .. store.ballot .. ' ' .. insync_text(newest)
end

-- That of a new store, or by an operator's word: its first node is not named yet.
local function insync_begin(epoch, run, copies)
    return epoch .. ' 0 ' .. string.match(run or '-', '%S+$') .. '/' .. copies
end

-- Without the nodes that are named in out, between blanks.
local function nodes_without(nodes, out)
    local left = {}
    for _, node in ipairs(nodes) do
        left[#left + 1] = not string.find(' ' .. out .. ' ', ' ' .. node .. ' ', 1, true) and node or nil
    end
    return left
end

-- Without the one at this address, and that which is the oldest of too many.
local function gone_without(gone, name)
    local left, host = {}, string.match(name, '^(.*)/')
    for node, at in string.gmatch(gone or '', '(%S+) (%d+)') do
        local stays = string.match(node, '^(.*)/') ~= host and #left < NODES_MAX - 1
        left[#left + 1] = stays and node .. ' ' .. at or nil
    end
    return table.concat(left, ' ')
end

local function gone_write(store, gone)
    store.gone = gone
    redis.call('HSET', KEYS[1], 'gone', gone)
end

-- What a lease service wants of the set that it knows, by the roll of its list:
--   shrink NODE...   they are away; they are waited for until this is recorded
--   gone NODE...     the same of such as can never be back, under this RUN_ID: even if too few are left to tell anything
--   grow NODE        it is waited for from now on, and by all: what is called in the epoch of before is refused
--   grown NODE       it has acknowledged what was done since   drop NODE  it does not
--   asked SYNCS      all that are needed, and connected, have on disk what they acknowledge; "-": one has not
local function insync_change(store, all, ids, wish, recorded)
    local set = insync_read(store.insync)
    local roll, verb, what = string.match(wish, '^(%d+) (%l+) (.+)$')
    if not set or tonumber(roll) ~= store.roll then
        return
    end
    local nodes = table.concat(set.nodes, ' ')
    local is_still = store.growing == '' and store.needed == nodes
    if verb == 'asked' then
        store.syncs = what
        redis.call('HSET', KEYS[1], 'syncs', what)
        members_changed(store)
    elseif (verb == 'shrink' or verb == 'gone') and is_still then
        local left = nodes_without(set.nodes, what)
        if #left < #set.nodes and #left >= (verb == 'gone' and 1 or tonumber(store.copies)) then
            set.nodes, set.generation = left, set.generation + 1
            insync_write(store, set, store.needed, '')
            for node in string.gmatch(what, '%S+') do
                local now = whole(RAW_MS + store.clock)
                gone_write(store, node .. ' ' .. now .. ' ' .. gone_without(store.gone, node))
            end
        end
    elseif verb == 'grow' and is_still and #set.nodes < NODES_MAX and recorded
        and recorded >= tonumber(store.changed) then
        epoch_raise(store, all, ids)
        insync_write(store, set, nodes .. ' ' .. what, what)
        store.forgotten = store.forgotten ~= string.match(what, '^(.*)/') and store.forgotten or ''
        redis.call('HSET', KEYS[1], 'forgotten', store.forgotten)
    elseif verb == 'grown' and store.growing == what then
        set.nodes[#set.nodes + 1], set.generation = what, set.generation + 1
        insync_write(store, set, store.needed, '')
        store.added = what
        redis.call('HSET', KEYS[1], 'added', what)
        gone_write(store, gone_without(store.gone, what))
    elseif verb == 'drop' and store.growing == what then
        insync_write(store, set, nodes, '')
    end
end

-- The first node is the one that is there; a shrink is in force when it is recorded, and so is who was added.
local function insync_goes_on(store, run, name, recorded)
    local set = insync_read(store.insync)
    if not set then
        return
    end
    if #set.nodes == 0 and name ~= '' then
        set.nodes[1] = name .. '/' .. string.match(run, '^%S+')
        insync_write(store, set, set.nodes[1], '')
    end
    local nodes = table.concat(set.nodes, ' ')
    local is_recorded = recorded and recorded >= tonumber(store.changed)
    if (store.added or '') ~= '' and is_recorded then
        store.added = ''
        redis.call('HSET', KEYS[1], 'added', '')
        members_changed(store)
    end
    if store.growing == '' and store.needed ~= nodes and is_recorded then
        insync_write(store, set, nodes, '')
    end
end

-- For a member: {copies, syncs, the one that is growing or was added, NODE..., perhaps "-" and the forgotten one}, this Redis first; {}: there
-- is no set.
local function insync_told(store, run)
    local set = insync_read(store.insync)
    if not set or #set.nodes == 0 then
        return {}
    end
    local joins = store.growing ~= '' and store.growing or store.added or ''
    local told, own = { store.copies, store.syncs or '', joins }, string.match(run, '^%S+')
    for node in string.gmatch(store.needed, '%S+') do
        local is_own = string.match(node, '[^/]*$') == own
        table.insert(told, is_own and 4 or #told + 1, node)
    end
    told[#told + 1] = (store.forgotten or '') ~= '' and '-' .. store.forgotten or nil
    return told
end
