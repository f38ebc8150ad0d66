-- release.lua - ends a hold, or an attempt's lock; its number stays. KEYS: node, lease. ARGV: 3 of node.lua, lease_id,
-- attempt ("": any). {released}, {lost}, {quarantine} or {not-ours}
-- on: store
local node, refusal = node_begins()
if refusal then
    return refusal
end
local lease = lease_read(node)
if not lease.is_live or lease.lease_id ~= ARGV[4] or ARGV[5] ~= '' and lease.attempt ~= ARGV[5] then
    return { 'lost' }
end
lease_until(0)
return { 'released' }
