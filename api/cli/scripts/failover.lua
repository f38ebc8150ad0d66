-- failover.lua - before another node of the in-sync set is made the primary on purpose: the gate is shut, so that nothing
-- is answered any more here, and nobody admits this Redis again for a while (lease/scripts/admit.lua). What was answered
-- before is on the disks of the set as ever; nothing is unknown to a caller, for nothing is under way.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}   ARGV[1]  "host:port" of the node that is wanted, as /readyz has it; "": any of the set
--   ARGV[2]  "shut" | "open" | "look"   ARGV[3]  a random name for the gating
--   ARGV[4]  for how many ms nobody admits, 1 to FAILOVER_MS
--   returns  {"shut", run_id of that node, or ""}   {"opened"}: they may admit at once, if it was by this gating
--              that nobody may, and not by that of another operator
--            {"at", epoch, 1: it serves, offset of this Redis, the lowest that those nodes have acknowledged, the
--              outsiders that copy it, blank between, 1: all that are needed have what is answered (shared/store/keep.c)}
--            {"empty"}   {"another", identity}   {"none"}: there is no in-sync set   {"gated"}
--            {"changing"}: the set is   {"outside"}: the node is not in the set, or is the primary
--            {"away", one of those nodes}: it copies nothing
--            in all but the first two nothing was changed
local NODE = ARGV[1]
local store, _, unknown = store_known()
local set, run = insync_read(store.insync), redis_run()
if unknown or not set then
    return unknown or { 'none' }
end
if ARGV[2] == 'open' then
    if string.match(store.failover or '', '^%S*') == ARGV[3] then
        redis.call('HSET', KEYS[1], 'failover', '')
    end
    return { 'opened' }
end
local info, offsets = redis.call('INFO', 'replication'), {}
for ip, port, offset in string.gmatch(info, '\nslave%d+:ip=([^,]+),port=(%d+),state=online,offset=(%d+)') do
    offsets[ip .. ':' .. port] = tonumber(offset)
end
local least, wanted_run, away
local count, in_step = 0, 0
for node in string.gmatch(store.needed, '%S+') do
    local name, its_run = string.match(node, '^(.*)/([^/]*)$')
    local is_own = its_run == string.match(run, '^%S+')
    if not is_own and (NODE == '' or NODE == name) then
        least, wanted_run = math.min(least or math.huge, offsets[name] or 0), NODE ~= '' and its_run or ''
        away = away or not offsets[name] and name
    end
    count, in_step = count + 1, in_step + ((is_own or (offsets[name] or 0) > 0) and 1 or 0)
    offsets[name] = nil
end
if ARGV[2] == 'look' then
    local offset = string.match(info, '\nmaster_repl_offset:(%d+)')
    local full, partial =
        string.match(redis.call('INFO', 'stats'), '\nsync_full:(%d+)%s+sync_partial_ok:(%d+)')
    local is_kept = in_step == count and count >= tonumber(store.copies)
        and (count == 1 or store.syncs == whole(full + partial))
    return { 'at', store.epoch, store_serves(store) and 1 or 0, offset, whole(least or 0),
        table.concat(sorted(offsets), ' '), is_kept and 1 or 0 }
end
if not store_serves(store) then
    return { 'gated' }
elseif store.growing .. (store.added or '') ~= '' or store.needed ~= table.concat(set.nodes, ' ') then
    return { 'changing' }
elseif not least then
    return { 'outside' }
elseif away then
    return { 'away', away }
end
gate_shut(store, 'failover', ARGV[3], run)
local till = RAW_MS + math.min(tonumber(ARGV[4]), FAILOVER_MS)
redis.call('HSET', KEYS[1], 'ballot', '', 'failover', ARGV[3] .. ' ' .. whole(till))
return { 'shut', wanted_run }
