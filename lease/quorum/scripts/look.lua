-- look.lua - the number of a lease, and its hold. KEYS: node, lease. ARGV: 3 of node.lua.
-- {free, number}, {held, ...} as lease_told() has it, {quarantine} or {not-ours}
-- on: node
return lease.is_live and lease_told('held') or { 'free', lease.number }
