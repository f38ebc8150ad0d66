-- renew.lua - renews a hold that has not ended. KEYS: node, lease. ARGV: 3 of node.lua, lease_id, ttl (ms; "": as it
-- was), attempt ("": any), who. {renewed, ...} as lease_told() has it, {lost, number}, {not-yours}, {too-long, longest ttl},
-- {quarantine} or {not-ours}
-- flags: allow-oom
-- on: node
if not lease.is_live or lease.lease_id ~= ARGV[4] or lease.token == ''
    or ARGV[6] ~= '' and lease.attempt ~= ARGV[6] then
    return { 'lost', lease.number }
elseif lease.who ~= '' and lease.who ~= ARGV[7] then
    return { 'not-yours' }
end
local ttl = ARGV[5] ~= '' and ARGV[5] or lease.ttl
if tonumber(ttl) > tonumber(node.max_ttl) then
    return { 'too-long', node.max_ttl }
end
redis.call('HSET', KEYS[2], 'ttl', ttl)
lease_until(tonumber(ttl))
lease.left, lease.ttl = ttl, ttl
return lease_told('renewed')
