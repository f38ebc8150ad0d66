-- forget.lua - drop remembered deletions whose time has come, a bounded number at a time.
-- flags: allow-oom
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
--   KEYS[1]  stripe
--   KEYS[2]  index of remembered deletions
--   KEYS[3]  what every resource of this stripe begins with
--   ARGV[1]  how many, 1 to 1000
--   returns  {"forgot", seq, how many}
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', NOW, 'LIMIT', 0, tonumber(ARGV[1]))

for _, key in ipairs(due) do
    touch()
    if redis.call('HGET', KEYS[3] .. key, 'z') == 'gone' then
        redis.call('DEL', KEYS[3] .. key)
    end
    redis.call('ZREM', KEYS[2], key)
end
return { 'forgot', SEQ, #due }
