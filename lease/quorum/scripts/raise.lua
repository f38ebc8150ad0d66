-- raise.lua - a number of the lease that was seen elsewhere is known here, too; and the hold that a majority has, if
-- there is no other one. However late it comes, no number falls, and nothing comes back that was given back here or
-- behind which a newer token was voted for here; what it brings to a minority all the same ends with its ttl.
-- KEYS: node, lease. ARGV: 3 of node.lua, number; of a hold: attempt, lease_id, ttl (ms), about, who, the number that
-- this node has answered when a majority had the hold, or "". {raised}, {quarantine} or {not-ours}
-- on: node
local is_own = lease.attempt == ARGV[5]
local is_free = not lease.is_live or is_own and lease.token == ''
local is_newer = tonumber(lease.number) > tonumber(ARGV[4]) and lease.number ~= ARGV[10]
local is_late = is_own and lease.is_released or is_newer
local is_short = ARGV[5] and tonumber(ARGV[7]) <= tonumber(node.max_ttl)
if is_short and is_free and not is_late then
    lease_hold(ARGV[5], ARGV[6], ARGV[4], ARGV[7], ARGV[8], ARGV[9])
    lease_until(tonumber(ARGV[7]))
elseif tonumber(lease.number) < tonumber(ARGV[4]) then
    redis.call('HSET', KEYS[1], 'highest', higher(node.highest, ARGV[4]))
    redis.call('HSET', KEYS[2], 'number', ARGV[4], 'healed', node.healed)
    if not lease.is_live and not lease.is_released then -- else its release may be asked for again
        redis.call('HSET', KEYS[2], 'until', '0', 'lease_id', '', 'attempt', '')
    end
    redis.call('PEXPIRE', KEYS[2], whole(higher(lease.left, '0') + 60000))
end
return { 'raised' }
