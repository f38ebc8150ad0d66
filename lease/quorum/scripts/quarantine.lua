-- quarantine.lua - whether the node is in quarantine, and in which. KEYS: node. ARGV: 3 of node.lua, an id for a new one,
-- "judged": a service with --access asks, "open": one that may be without it beside such, "": one that may not,
-- the longest ttl (ms; 0: not known), which a node that was wiped keeps: all of them may have been.
-- {well}, {quarantine, id, since how long (ms)}, {not-ours}, or {not-ours, "access"}: one with it has asked before
-- on: store
local refusal = node_begins()
if not refusal then
    local judged = redis.call('HGET', KEYS[1], 'access')
    if ARGV[5] == 'judged' and not judged then
        redis.call('HSET', KEYS[1], 'access', '1')
    end
    return judged and ARGV[5] == '' and { 'not-ours', 'access' } or { 'well' }
elseif refusal[1] ~= 'quarantine' then
    return refusal
end
local of = redis.call('HMGET', KEYS[1], 'quarantine', 'of_run', 'since')
if of[1] and of[2] == ARGV[2] then
    return { 'quarantine', of[1], whole(clock_ms() - of[3]) }
end
redis.call('HDEL', KEYS[1], 'run')
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'quarantine', ARGV[4], 'of_run', ARGV[2],
    'since', whole(clock_ms()), 'max_ttl', higher(node.max_ttl or '0', ARGV[6]))
return { 'quarantine', ARGV[4], '0' }
