-- quarantine.lua - whether the node is in quarantine, and in which. KEYS: node. ARGV: 3 of node.lua, an id for a new one,
-- "judged": a service with --access asks, "open": one that may be without it beside such, "": one that may not,
-- the longest ttl (ms; 0: not known), which a node that was wiped keeps: all of them may have been.
-- {well, highest number, longest ttl}, {quarantine, the same two, id, since how long (ms)}, {not-ours}, or
-- {not-ours, "access"}: one with it has asked before
-- on: store
local refusal = node_begins()
if not refusal then
    local judged = redis.call('HGET', KEYS[1], 'access')
    if ARGV[5] == 'judged' and not judged then
        redis.call('HSET', KEYS[1], 'access', '1')
    end
    return judged and ARGV[5] == '' and { 'not-ours', 'access' } or { 'well', node.highest, node.max_ttl }
elseif refusal[1] ~= 'quarantine' then
    return refusal
end
local of = redis.call('HMGET', KEYS[1], 'quarantine', 'of_run', 'since')
local max_ttl = higher(node.max_ttl or '0', ARGV[6])
if not of[1] or of[2] ~= ARGV[2] or tonumber(of[3]) > clock_ms() then -- the last: its clock has gone back
    of = { ARGV[4], ARGV[2], whole(clock_ms()) }
    redis.call('HDEL', KEYS[1], 'run')
    redis.call('HSET', KEYS[1], 'id', ARGV[1], 'quarantine', of[1], 'of_run', of[2], 'since', of[3],
        'max_ttl', max_ttl)
end
return { 'quarantine', node.highest or '0', max_ttl, of[1], whole(clock_ms() - of[3]) }
