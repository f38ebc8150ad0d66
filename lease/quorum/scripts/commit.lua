-- commit.lua - second round of an attempt: votes for its token, if its lock is there and no barrier has ended it.
-- KEYS: node, lease. ARGV: 3 of node.lua, attempt, token, ttl (ms), about (the hold), who (its
-- identity). {voted}, {lost}, {too-long, longest ttl}, {quarantine} or {not-ours}
-- on: node
if not lease.is_live or lease.attempt ~= ARGV[4] or lease.epoch ~= node.epoch or lease.token ~= ''
    or tonumber(lease.number) >= tonumber(ARGV[5]) then
    return { 'lost' }
elseif tonumber(ARGV[6]) > tonumber(node.max_ttl) then
    return { 'too-long', node.max_ttl }
end
lease_hold(ARGV[4], lease.lease_id, ARGV[5], ARGV[6], ARGV[7], ARGV[8])
lease_until(tonumber(ARGV[6]))
return { 'voted' }
