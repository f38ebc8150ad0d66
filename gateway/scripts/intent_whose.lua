-- intent_whose.lua - has a gateway anything open in this stripe? A bounded number at a time.
--   KEYS[1]  stripe
--   ARGV[1]  gateway   ARGV[2]  an incarnation of it, or "": any
--   ARGV[3]  where to go on, "" at first   ARGV[4]  how many intents to look at, 1 to 1000
--   returns  {"whose", seq, 1 when it has, or 0, where to go on, or "" when all were looked at}
local list, behind = intents_page(intents_of(KEYS[1]), ARGV[3], ARGV[4])
local found = 0
for _, text in ipairs(list) do
    local gateway, incarnation = string.match(text, '^%S+ %d+ %d+ %d+ %a %S+ (%S+) (%S+) ')
    if gateway == ARGV[1] and (ARGV[2] == '' or incarnation == ARGV[2]) then
        found = 1
    end
end
return { 'whose', SEQ, found, behind }
