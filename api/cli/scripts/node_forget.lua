-- node_forget.lua - a node of Redis that is gone for good is out of the in-sync set, and is not named as away any more.
-- on: store
-- flags: allow-oom
--   KEYS[1]  pawl:{store}   ARGV[1]  "host:port" of the node, as /readyz has it
--   returns  {"forgotten", 1: it was in the set, and is not waited for when that is recorded}
--            {"empty"}   {"another", identity}   {"none"}: there is no in-sync set   {"gated"}
--            {"connected"}: it copies this Redis, or is it   {"changing"}: the set is
--            {"few"}: without it the set would be smaller than --copies
--            {"unknown"}: no node of this name is in the set, or is among the last that were
--            in all but the first nothing was changed
local NODE = ARGV[1]
local store, _, unknown = store_known()
local set = insync_read(store.insync)
if unknown or not set then
    return unknown or { 'none' }
end
if not store_serves(store) then
    return { 'gated' }
end
for ip, port in string.gmatch(redis.call('INFO', 'replication'), '\nslave%d+:ip=([^,]+),port=(%d+),') do
    if ip .. ':' .. port == NODE then
        return { 'connected' }
    end
end
local found
for node in string.gmatch(store.needed, '%S+') do
    local name, run = string.match(node, '^(.*)/([^/]*)$')
    found = name == NODE and node or found
    if name == NODE and run == string.match(store.run, '^%S+') then
        return { 'connected' }
    end
end
local last = ' ' .. (store.gone or '')
if not found and store.forgotten ~= NODE and not string.find(last, ' ' .. NODE .. '/', 1, true) then
    return { 'unknown' }
end
if found and found == store.growing then
    insync_write(store, set, table.concat(set.nodes, ' '), '')
elseif found then
    local left = nodes_without(set.nodes, found)
    if store.growing ~= '' or #left == #set.nodes then
        return { 'changing' }
    elseif #left < tonumber(store.copies) then
        return { 'few' }
    end
    set.nodes, set.generation = left, set.generation + 1
    insync_write(store, set, store.needed, '')
end
redis.call('HSET', KEYS[1], 'forgotten', NODE)
members_changed(store)
return { 'forgotten', found and 1 or 0 }
