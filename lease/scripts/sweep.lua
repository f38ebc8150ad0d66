-- sweep.lua - end what is over its deadline and forget what was remembered long enough, a bounded number at
-- a time.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: shared/record/hold.lua
--   KEYS[1]  stripe   KEYS[2]  due index   KEYS[3]  what the key of every lease of this stripe begins with
--   ARGV[1]  how many, 1 to 1000   ARGV[2]  remember_ms
--   returns  {"swept", seq, how many were due, how many of them expired}
redis.call('PERSIST', KEYS[1]) -- nothing of ours gives a counter an end; somebody else's EXPIRE shall not
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', NOW, 'LIMIT', 0, tonumber(ARGV[1]))
local expired = 0

for _, name in ipairs(due) do
    local record = hold_read(KEYS[3] .. name)
    if record and record.lapsed then
        hold_settle(record, KEYS[2], name, tonumber(ARGV[2]))
        expired = expired + 1
    elseif record and record.left_ms > 0 then
        -- Never so by our own scripts; the record is what counts.
        redis.call('ZADD', KEYS[2], NOW + record.left_ms, name)
    else
        touch()
        redis.call('DEL', KEYS[3] .. name)
        redis.call('ZREM', KEYS[2], name)
    end
end
return { 'swept', SEQ, #due, expired }
