-- release.lua - ends a hold, or an attempt's lock; its number stays. KEYS: node, lease. ARGV: 3 of node.lua, lease_id,
-- attempt ("": any), who. {released}, {lost}, {not-yours}, {quarantine} or {not-ours}
-- flags: allow-oom
-- on: node
local is_its = lease.lease_id == ARGV[4]
local is_anothers = is_its and lease.token ~= '' and lease.who ~= '' and lease.who ~= ARGV[6]
if lease.is_released and is_its then
    return { is_anothers and 'not-yours' or 'released' } -- again
end
if not lease.is_live or not is_its or ARGV[5] ~= '' and lease.attempt ~= ARGV[5] then
    return { 'lost' }
end
if is_anothers then
    return { 'not-yours' }
end
redis.call('HSET', KEYS[2], 'until', '0')
redis.call('PEXPIRE', KEYS[2], '60000')
return { 'released' }
