-- intent_resolve.lua - an operator knows what has become of writes whose end is unknown.
-- flags: allow-oom
--   KEYS[1]  stripe
--   ARGV[1]  name of the lease   ARGV[2]  SEQ of one intent (lib/intent.lua), with zeros in front or without;
--            or "": all whose end nobody will tell (u and d)
--   ARGV[3]  with a SEQ: "force": one that is being sent is given up. Its gateway closes the connection, and
--            the same again removes it then; or, when that gateway was silent both times, SILENT_MS later. Else ""
--   returns  {"resolved", seq, how many were removed, {texts of those that are being sent}}
--            {"several", seq}: intents of the lease have this SEQ, in a store that was set back (intent_again.lua); which
--              one is meant nobody can say, and nothing was changed
--
-- One that is being sent has a gateway that may yet tell its end, or send it only now: without force it is
-- never removed here, but after its gateway was said to be dead (intent_takeover.lua). One that waits, when
-- it is named: its gateway then does not send it.
local FORGOTTEN_MS, SILENT_MS = 600000, 1500 -- SILENT_MS: longer than between two heartbeats
local function given_up_forget()
    local all = redis.call('HGETALL', GIVEN_UP)
    for i = 1, #all, 2 do
        if NOW - string.match(all[i + 1], '%d+') > FORGOTTEN_MS then
            redis.call('HDEL', GIVEN_UP, all[i])
        end
    end
end

-- No time that has passed proves that a gateway which lives has closed its connection: what it had from the
-- store may be on the way to it. It says so itself, and then the write is unknown.
local function is_given_up(text)
    local who, gateway, incarnation = string.match(text, '^%S+ %d+ %d+ %d+ %a %S+ ((%S+) (%S+) %S+) ')
    local member = redis.call('HMGET', STORE .. ':m:' .. gateway, 'incarnation', 'at')
    local lives = member[1] == incarnation and silent_ms(clock_ms(), member[2]) <= FRESH_MS
    local before = redis.call('HGET', GIVEN_UP, who)
    local since, asked = string.match(not lives and before or '', '^silent (%d+) (%d+)$')
    local is_asked_on = asked and NOW - asked < SILENT_MS -- else it may have lived in between
    since = is_asked_on and tonumber(since) or NOW
    if NOW - since >= SILENT_MS then
        return true -- all the time: a leap of the clock makes everybody silent until the next heartbeat
    end
    given_up_forget()
    redis.call('PUBLISH', ASKED .. gateway, ARGV[1]) -- to be used no more, if it stays open
    touch()
    redis.call('HSET', GIVEN_UP, who, (lives and 'lives ' or 'silent ' .. whole(since) .. ' ') .. whole(NOW))
    if not before then
        redis.call('HINCRBY', STORE, 'given-up', '1')
    end
    return false
end

local seq, removed, sending, meant = ARGV[2] ~= '' and ARGV[2] + 0, 0, {}, {}
local name, key = ARGV[1], KEYS[1] .. ':i'
for _, text in ipairs(redis.call('ZRANGEBYLEX', key, '[' .. name .. ' ', '(' .. name .. '!')) do
    local its_seq = string.match(text, '^%S+ %d+ %d+ (%d+) ')
    if not seq or seq == tonumber(its_seq) then
        meant[#meant + 1] = text
    end
end
if seq and #meant > 1 then
    return { 'several', SEQ }
end
for _, text in ipairs(meant) do
    local state = string.match(text, '^%S+ %d+ %d+ %d+ (%a) ')
    if state == 's' and not (ARGV[3] == 'force' and is_given_up(text)) then
        sending[#sending + 1] = text
    elseif state ~= 'q' or seq then
        touch()
        removed = removed + redis.call('ZREM', key, text)
    end
end
return { 'resolved', SEQ, removed, sending }
