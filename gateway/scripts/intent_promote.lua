-- intent_promote.lua - is it the turn of a write that waits? Then it is being sent from this very step on, if
-- its token is still good.
-- flags: allow-oom
--   KEYS[1], ARGV[1..12]  as in intent_admit.lua   ARGV[13]  text of the intent, as the store answered it last
--   returns  {"sending", seq, mark, its new text}: send it
--            {"queued", seq, mark, text, text of the first that it waits for}; or "store", "GATEWAY
--              INCARNATION" in place of that: this one has yet to say what it has sent
--            {"cancelled", seq, reason or "", last token, its epoch, mark, holder or ""}: it was taken out
--              before, and must not be sent; as in a refusal, if the token is not good now
--            {"refused", ...} (lib/fence.lua): the same, and it was taken out by this script
--            {"routes-differ", seq, hash of the table that is served}: it is as it was
--
-- Only a queued one is ever taken out here: one that is being sent may have been sent.
local OPEN = intents_of(KEYS[1])
local _, differ = routes_served()
if differ then
    return differ
end
local check = check_of()
local record = check.read()
local reason = check.reason(record, 'write')
local mark = record and record.mark or 0
local text = redis.call('ZSCORE', OPEN, ARGV[13]) and ARGV[13] or intent_find(OPEN, ARGV[13])
local head, state = string.match(text or '', '^(%S+ %d+ %d+ %d+) (%a) ')
if state == 's' then
    return { 'sending', SEQ, mark, text } -- an earlier call did it, whose reply was lost
elseif state ~= 'q' and not reason then
    return { 'cancelled', SEQ, '', record.token, record.epoch, mark, record.holder or '' }
elseif state ~= 'q' then
    local told = check.refuse(record, reason)
    told[1] = 'cancelled'
    return told
end
if reason then
    intent_remove({ text })
    return check.refuse(record, reason)
end
local doubtful = doubt_of(ARGV[12])
if doubtful then
    return { 'queued', SEQ, mark, text, 'store', doubtful }
end
-- Equal ones are in front of a serial one if they came before it.
local own = presented_text()
local behind = ARGV[8] == 'o+' and head or ARGV[1] .. ' ' .. own
local first, gone = intent_look(own, '(' .. behind, waits_not_for(ARGV[8]) or '')
intent_remove(gone)
if first then
    return { 'queued', SEQ, mark, text, first }
end

touch()
local sending = intent_as(text, 's')
redis.call('ZREM', OPEN, text)
redis.call('ZADD', OPEN, '0', sending)
return { 'sending', SEQ, check.pass(record), sending }
