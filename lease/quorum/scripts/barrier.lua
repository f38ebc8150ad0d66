-- barrier.lua - reads a node that is well for one in quarantine: from now on no lock of before is voted for.
-- KEYS: node. ARGV: 3 of node.lua. {barred, highest number}, {quarantine} or {not-ours}
-- flags: allow-oom
-- on: node
redis.call('HINCRBY', KEYS[1], 'epoch', 1)
return { 'barred', node.highest }
