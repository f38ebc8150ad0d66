-- intent_resolve.lua - an operator knows what has become of writes whose end nobody told.
-- flags: allow-oom
-- use: shared/record/clock.lua
-- use: shared/record/stripe.lua
-- use: gateway/scripts/lib/intent.lua
--   KEYS[1]  stripe
--   ARGV[1]  name of the lease   ARGV[2]  SEQ of one intent (lib/intent.lua), with zeros in front or without;
--            or "": all whose end nobody will tell (u and d)
--   ARGV[3]  with a SEQ: "force": one that is being sent is given up; when its gateway has had the time to
--            close the connection, the same again removes it. Else ""
--   returns  {"resolved", seq, how many were removed, {texts of those that are being sent}}
--
-- One that is being sent has a gateway that may yet tell its end, or send it only now: without force it is
-- never removed here, but after its gateway was said to be dead (intent_takeover.lua). One that waits, when
-- it is named: its gateway then does not send it.
local LOOKED_MS, FORGOTTEN_MS = 2500, 600000 -- gateway/given_up.h
local function is_given_up(text)
    local who = string.match(text, '^%S+ %d+ %d+ %d+ %a %S+ (%S+ %S+ %S+) ')
    local all = redis.call('HGETALL', GIVEN_UP)
    for i = 1, #all, 2 do
        if all[i] == who then
            return NOW - all[i + 1] >= LOOKED_MS
        elseif NOW - all[i + 1] > FORGOTTEN_MS then
            redis.call('HDEL', GIVEN_UP, all[i])
        end
    end
    touch()
    redis.call('HSET', GIVEN_UP, who, whole(NOW))
    return false
end
local seq, removed, sending = ARGV[2] ~= '' and ARGV[2] + 0, 0, {}
local name, key = ARGV[1], KEYS[1] .. ':i'
for _, text in ipairs(redis.call('ZRANGEBYLEX', key, '[' .. name .. ' ', '(' .. name .. '!')) do
    local its_seq, state = string.match(text, '^%S+ %d+ %d+ (%d+) (%a) ')
    local is_meant = not seq or seq == tonumber(its_seq)
    if is_meant and state == 's' and not (ARGV[3] == 'force' and is_given_up(text)) then
        sending[#sending + 1] = text
    elseif is_meant and (state ~= 'q' or seq) then
        touch()
        removed = removed + redis.call('ZREM', key, text)
    end
end
return { 'resolved', SEQ, removed, sending }
