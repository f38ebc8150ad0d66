-- quarantine.lua - whether the node is in quarantine, and in which. KEYS: node. ARGV: 3 of node.lua, an id for a new one.
-- {well}, {quarantine, id, since how long (ms)} or {not-ours}
-- on: store
local refusal = node_begins()
if not refusal then
    return { 'well' }
elseif refusal[1] ~= 'quarantine' then
    return refusal
end
local of = redis.call('HMGET', KEYS[1], 'quarantine', 'of_run', 'since')
if of[1] and of[2] == ARGV[2] then
    return { 'quarantine', of[1], whole(clock_ms() - of[3]) }
end
redis.call('HDEL', KEYS[1], 'run')
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'quarantine', ARGV[4], 'of_run', ARGV[2],
    'since', whole(clock_ms()))
return { 'quarantine', ARGV[4], '0' }
