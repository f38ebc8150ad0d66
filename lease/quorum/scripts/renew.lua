-- renew.lua - renews a hold that has not ended. KEYS: node, lease. ARGV: 3 of node.lua, lease_id, ttl (ms).
-- {renewed, attempt, token}, {lost}, {too-long, longest ttl}, {quarantine} or {not-ours}
-- on: store
local node, refusal = node_begins()
if refusal then
    return refusal
end
local lease = lease_read(node)
if not lease.is_live or lease.lease_id ~= ARGV[4] or lease.token == '' then
    return { 'lost' }
elseif tonumber(ARGV[5]) > tonumber(node.max_ttl) then
    return { 'too-long', node.max_ttl }
end
lease_until(tonumber(ARGV[5]))
return { 'renewed', lease.attempt, lease.token }
