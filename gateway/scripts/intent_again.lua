-- intent_again.lua - intents that a store may have lost are recorded again, by the gateway that has them.
-- flags: allow-oom
--   KEYS[1]  stripe
--   ARGV[1..]  1 to 32 texts of intents of this stripe (lib/intent.lua), as the store answered them last
--   returns  {"recorded", seq, how many were not there}
--
-- One that is there already stays as it is, unless it waits in the store and was sent by its text here: a
-- store that was put back may know it by an older text. The grace of one whose gateway is dead begins
-- anew: of how the clock went before, this store may know nothing. No intent of the list may be closed while
-- this call is under way, nor for 2 s after one without a reply was sent (intent_close.lua, "forget").
local OPEN = intents_of(KEYS[1])
local recorded, WAITING = 0, '^%S+ %d+ %d+ %d+ q '
for i = 1, #ARGV - OWN_ARGS do
    local found = intent_find(OPEN, ARGV[i])
    if found and string.match(found, WAITING) and not string.match(ARGV[i], WAITING) then
        touch()
        redis.call('ZREM', OPEN, found)
        found = nil
    end
    if not found then
        local is_dead = string.match(ARGV[i], '^%S+ %d+ %d+ %d+ d ')
        touch()
        redis.call('ZADD', OPEN, '0', is_dead and intent_as(ARGV[i], 'd', store_leaps()) or ARGV[i])
        recorded = recorded + 1
    end
end
return { 'recorded', SEQ, recorded }
