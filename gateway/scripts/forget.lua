-- forget.lua - drop remembered deletions whose time has come, a bounded number at a time.
-- flags: allow-oom
--   KEYS[1]  stripe
--   KEYS[2]  index of remembered deletions
--   ARGV[1]  how many, 1 to 1000
--   returns  {"forgot", seq, how many}
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', NOW, 'LIMIT', 0, tonumber(ARGV[1]))

for _, key in ipairs(due) do
    touch()
    local resource = KEYS[1] .. ':r:' .. key
    if string.match(redis.call('HGET', resource, 'z') or '', '^gone\n') then
        redis.call('DEL', resource)
    end
    redis.call('ZREM', KEYS[2], key)
end
return { 'forgot', SEQ, #due }
