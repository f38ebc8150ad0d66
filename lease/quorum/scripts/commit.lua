-- commit.lua - second round of an attempt: votes for its token, if its lock is there and no barrier has ended it.
-- KEYS: node, lease. ARGV: 3 of node.lua, attempt, token, ttl (ms), about (who holds it).
-- {voted}, {lost}, {too-long, longest ttl}, {quarantine} or {not-ours}
-- on: store
local node, refusal = node_begins()
if refusal then
    return refusal
end
local lease = lease_read(node)
if not lease.is_live or lease.attempt ~= ARGV[4] or lease.epoch ~= node.epoch or lease.token ~= '' then
    return { 'lost' }
elseif tonumber(ARGV[6]) > tonumber(node.max_ttl) then
    return { 'too-long', node.max_ttl }
end
redis.call('HSET', KEYS[1], 'highest', higher(node.highest, ARGV[5]))
redis.call('HSET', KEYS[2], 'number', ARGV[5], 'token', ARGV[5], 'about', ARGV[7])
lease_until(tonumber(ARGV[6]))
return { 'voted' }
