-- intent_takeover.lua - former incarnations of a gateway are known to be dead: what they had open will not be
-- closed by them. A bounded number at a time.
-- flags: allow-oom
--   KEYS[1]  stripe
--   ARGV[1]  gateway   ARGV[2]  the incarnation that lives, or "": none
--   ARGV[3]  where to go on, "" at first   ARGV[4]  how many intents to look at, 1 to 1000
--   ARGV[5..]  the incarnations that are dead; none: all but the one that lives; "seen" and an incarnation:
--             the same, but not the one that is the member by now, if it is another than that
--   returns  {"taken", seq, {texts that its other incarnations have open now, also those that are not known
--             to be dead}, where to go on, or "" when all are done, how many of the dead ones' were removed}
--
-- What was never sent is removed, and so is what nobody waits for (kinds k and a). Of the others nobody knows
-- whether they still arrive: they are d from now on, and stay until it is known, or their grace is over.
-- One that a hand made longer than TEXT_MAX fits into no caller's buffer (gateway/intent/): no page ends there.
local OPEN, TEXT_MAX = intents_of(KEYS[1]), 776
local dead, are_all, newcomer = {}, #ARGV == 4 + OWN_ARGS or ARGV[5] == 'seen', nil
if ARGV[5] == 'seen' then
    local member = redis.call('HGET', 'pawl:{store}:m:' .. ARGV[1], 'incarnation')
    newcomer = member ~= ARGV[6] and member
end
for i = 5, #ARGV - OWN_ARGS do
    dead[ARGV[i]] = true
end
local list, behind, theirs, removed = {}, ARGV[3], {}, 0
repeat
    local from = behind == '' and '-' or '(' .. behind
    local more = redis.call('ZRANGEBYLEX', OPEN, from, '+', 'LIMIT', 0, ARGV[4])
    for _, text in ipairs(more) do
        list[#list + 1] = text
    end
    behind = #more == tonumber(ARGV[4]) and more[#more] or ''
until #behind <= TEXT_MAX

local function take(text)
    local state, kind, gateway, incarnation =
        string.match(text, '^%S+ %d+ %d+ %d+ (%a) (%S+) (%S+) (%S+) ')
    if gateway ~= ARGV[1] or incarnation == ARGV[2] or incarnation == newcomer then
        return nil
    elseif state == 'd' or not (are_all or dead[incarnation]) then
        return text
    end
    touch()
    redis.call('ZREM', OPEN, text)
    if state == 'q' or kind == 'k' or kind == 'a' then
        removed = removed + 1
        return nil
    end
    local taken = intent_as(text, 'd', store_leaps())
    redis.call('ZADD', OPEN, '0', taken)
    return taken
end

for _, text in ipairs(list) do
    theirs[#theirs + 1] = take(text)
end
-- What is d now stands in front of what it was: behind the last text there is nothing that was looked at.
return { 'taken', SEQ, theirs, behind, removed }
