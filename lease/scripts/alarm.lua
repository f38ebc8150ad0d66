-- alarm.lua - which leases, in whose lines somebody waits, must be looked at now? Changes nothing.
--   KEYS[1]  any stripe   KEYS[2]  the alarms (lib/line.lua)
--   ARGV[1]  how many, 1 to 1000
--   returns  {"alarms", seq, ms until the next one or -1: none is set, {name, ...}}
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', NOW, 'LIMIT', 0, tonumber(ARGV[1]))
local next_one = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. whole(NOW), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return { 'alarms', SEQ, next_one[2] and next_one[2] - NOW or -1, due }
