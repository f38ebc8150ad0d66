-- lock.lua - first round of an attempt: locks the lease, and reads its number.
-- KEYS: node, lease. ARGV: 3 of node.lua, attempt, lease_id, for how long (ms).
-- {locked, number}, {held, ...} as lease_told() has it, {quarantine} or {not-ours}
-- on: node
if lease.is_live then
    return lease_told('held')
end
redis.call('HSET', KEYS[2], 'attempt', ARGV[4], 'lease_id', ARGV[5], 'number', lease.number, 'token', '',
    'ttl', ARGV[6], 'about', '', 'who', '', 'epoch', node.epoch, 'healed', node.healed)
lease_until(tonumber(ARGV[6]))
return { 'locked', lease.number }
