-- create.lua - makes an empty Redis a node. KEYS: node. ARGV: id, run_id, 0, the longest ttl (ms).
-- {created} or {there}
-- on: store
if redis.call('EXISTS', KEYS[1]) == 1 then
    return { 'there' }
end
redis.call('HSET', KEYS[1], 'id', ARGV[1], 'run', ARGV[2], 'highest', '0', 'epoch', '0',
    'healed', '', 'max_ttl', ARGV[4])
return { 'created' }
