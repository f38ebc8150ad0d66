-- inbox_heartbeat.lua - an inbox says that it lives: who waits there may be handed a lease (lib/line.lua).
-- flags: allow-oom
--   KEYS[1]  stripe of the inbox   KEYS[2]  due index   KEYS[3]  inbox
--   ARGV[1]  its id   ARGV[2]  "open" | "beat" | "close"
--   returns  {"beats", seq}   {"closed", seq}
--            {"late", seq}: it was silent so long that those who wait there may have been passed over, or
--              nobody hears its messages at this Redis; it is dead
-- Until when it lived is known for PLACE_MS_MAX: so long places may be kept that were there.
local LOOK_MS = 60000
local at = redis.call('HGET', KEYS[3], 'at')
local member = ':d:' .. ARGV[1]

-- PUBLISH says how many have heard it: none when the inbox listens to another Redis, or to none any more.
local silent = ARGV[2] ~= 'close' and redis.call('PUBLISH', KEYS[3], 'beat') == 0

if silent or ARGV[2] == 'close' or ARGV[2] == 'beat' and NOW > inbox_lives_until(at) then
    if at and NOW <= inbox_lives_until(at) then
        touch()
        redis.call('HSET', KEYS[3], 'at', whole(NOW - INBOX_MS - 1))
    end
    return { ARGV[2] == 'close' and 'closed' or 'late', SEQ }
end
touch()
redis.call('HSET', KEYS[3], 'at', whole(NOW))
if ARGV[2] == 'open' then
    redis.call('ZADD', KEYS[2], whole(NOW + LOOK_MS), member)
end
return { 'beats', SEQ }
