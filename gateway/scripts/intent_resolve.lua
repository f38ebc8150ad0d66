-- intent_resolve.lua - an operator knows what has become of writes whose end nobody told.
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
--   KEYS[1]  stripe
--   ARGV[1]  name of the lease   ARGV[2]  SEQ of one intent (lib/intent.lua), with zeros in front or without;
--            or "": all whose end nobody will tell (u and d)
--   returns  {"resolved", seq, how many were removed, {texts of those that are being sent}}
--
-- One that is being sent has a gateway that may yet tell its end, or send it only now: it is never removed
-- here, but after its gateway was said to be dead (intent_takeover.lua). One that waits, when it is named:
-- its gateway then does not send it.
local seq, removed, sending = ARGV[2] ~= '' and ARGV[2] + 0, 0, {}
local name, key = ARGV[1], KEYS[1] .. ':i'
for _, text in ipairs(redis.call('ZRANGEBYLEX', key, '[' .. name .. ' ', '(' .. name .. '!')) do
    local its_seq, state = string.match(text, '^%S+ %d+ %d+ (%d+) (%a) ')
    local is_meant = not seq or seq == tonumber(its_seq)
    if is_meant and state == 's' then
        sending[#sending + 1] = text
    elseif is_meant and (state ~= 'q' or seq) then
        touch()
        removed = removed + redis.call('ZREM', key, text)
    end
end
return { 'resolved', SEQ, removed, sending }
