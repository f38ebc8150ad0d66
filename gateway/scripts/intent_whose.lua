-- intent_whose.lua - has a gateway anything open in this stripe? A bounded number at a time.
--   KEYS[1]  stripe
--   ARGV[1]  gateway   ARGV[2]  an incarnation of it, or "": any
--   ARGV[3]  where to go on, "" at first   ARGV[4]  how many intents to look at, 1 to 1000
--   returns  {"whose", seq, 1 when it has, or 0, where to go on, or "" when all were looked at}
local from, found = ARGV[3] == '' and '-' or '(' .. ARGV[3], 0
local list = redis.call('ZRANGEBYLEX', KEYS[1] .. ':i', from, '+', 'LIMIT', 0, ARGV[4])
for _, text in ipairs(list) do
    local gateway, incarnation = string.match(text, '^%S+ %d+ %d+ %d+ %a %S+ (%S+) (%S+) ')
    if gateway == ARGV[1] and (ARGV[2] == '' or incarnation == ARGV[2]) then
        found = 1
    end
end
return { 'whose', SEQ, found, #list == tonumber(ARGV[4]) and list[#list] or '' }
