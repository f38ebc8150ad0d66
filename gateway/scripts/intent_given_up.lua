-- intent_given_up.lua - which of the writes that this process is sending did an operator give up?
--   KEYS[1]  any stripe
--   ARGV[1]  gateway   ARGV[2]  incarnation
--   returns  {"given-up", seq, {their IDs}}
local ids, own = {}, ARGV[1] .. ' ' .. ARGV[2] .. ' '
for _, who in ipairs(redis.call('HKEYS', GIVEN_UP)) do
    if string.sub(who, 1, #own) == own then
        ids[#ids + 1] = string.sub(who, #own + 1)
    end
end
return { 'given-up', SEQ, ids }
