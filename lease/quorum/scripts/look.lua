-- look.lua - the number of a lease, and its hold. KEYS: node, lease. ARGV: 3 of node.lua.
-- {free, number}, {held, number, attempt, token ("": locked), left (ms), ttl (ms), about, for how long
-- (ms)}, {quarantine} or {not-ours}
-- on: node
if not lease.is_live then
    return { 'free', lease.number }
end
return { 'held', lease.number, lease.attempt, lease.token, lease.left, lease.ttl, lease.about,
    whole(clock_ms() - (lease.since or clock_ms())) }
