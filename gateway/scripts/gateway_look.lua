-- gateway_look.lua - what the store knows of a gateway that is said to be dead. Changes nothing.
--   KEYS[1]  stripe 0
--   ARGV[1]  gateway   ARGV[2]  the incarnation that is meant, or "": all   ARGV[3]  but this one, or ""
--   returns  {"fresh", seq, ms since its last heartbeat, its incarnation}: it lives, and is meant
--            {"known", seq, 0, the incarnation that is the member, or ""}: a member, or in doubt
--            {"unknown", seq, 0, the same}: neither, but it may have open intents
--
-- Whether it lives is decided as by pawl store forget (api/cli/scripts/forget_member.lua), by Redis' own
-- clock.
local member = redis.call('HMGET', 'pawl:{store}:m:' .. ARGV[1], 'role', 'incarnation', 'state', 'at')
local incarnation = member[2] or ''
local is_member = member[1] == 'gateway' and (ARGV[2] == '' or ARGV[2] == incarnation)
local silence = silent_ms(clock_ms(), member[4])
if is_member and incarnation ~= ARGV[3] and member[3] ~= 'out' and member[3] ~= 'forgotten'
    and silence <= FRESH_MS then
    return { 'fresh', SEQ, silence, incarnation }
end
if is_member then
    return { 'known', SEQ, 0, incarnation }
end
for _, entry in ipairs(redis.call('HKEYS', 'pawl:{store}:doubt')) do
    local gateway, its = string.match(entry, '^(%S+) (%S+)$')
    if gateway == ARGV[1] and (ARGV[2] == '' or its == ARGV[2]) then
        return { 'known', SEQ, 0, incarnation }
    end
end
return { 'unknown', SEQ, 0, incarnation }
