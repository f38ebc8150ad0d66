-- fence_plain.lua - most tokens: that of the exclusive hold that is live, about which there is nothing
-- special. They are seen to be good here, before the functions are made that all others need (lib/fence.lua):
-- making them costs as much as some commands.
--   KEYS and ARGV  as in lib/fence.lua
local PLAIN = redis.call('HMGET', KEYS[2], 's', 't', 'e', 'h', 'd', 'y', 'k', 'p')

-- A number that is written otherwise is not refused: it is looked at again.
local IS_PLAIN = PLAIN[1] == 'held' and not PLAIN[6] and PLAIN[2] == ARGV[2] and PLAIN[3] == ARGV[3]
    and PLAIN[4] == ARGV[4] and NOW < PLAIN[5] + 0 and ARGV[3] + 0 >= ALIVE
    and (ARGV[3] + 0 < EPOCH or ARGV[3] + 0 == EPOCH and ARGV[2] + 0 <= COUNTER)
-- Whether the mark is that of this token already.
local IS_MARKED = PLAIN[7] == ARGV[2] and PLAIN[8] == ARGV[3]
