-- heal.lua - ends a quarantine, with the highest number that a majority of barriers answered.
-- KEYS: node. ARGV: 3 of node.lua, id of the quarantine, number, ttl (ms).
-- {healed}, {wait, ms}: holds of before may live yet; {other}: it is not in that quarantine
-- flags: allow-oom
-- on: store
local of = redis.call('HMGET', KEYS[1], 'quarantine', 'of_run', 'since', 'id', 'highest')
if of[1] ~= ARGV[4] or of[2] ~= ARGV[2] or of[4] ~= ARGV[1] then
    return { 'other' }
end
local left = of[3] + ARGV[6] - clock_ms()
if left > 0 then
    return { 'wait', whole(left) }
end
redis.call('HDEL', KEYS[1], 'quarantine', 'of_run', 'since')
redis.call('HSET', KEYS[1], 'run', ARGV[2], 'healed', ARGV[4], 'epoch', '0', 'max_ttl', ARGV[6],
    'highest', higher(higher(of[5] or '0', ARGV[5]), ARGV[3]))
return { 'healed' }
